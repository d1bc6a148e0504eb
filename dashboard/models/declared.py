"""Documents that were applied: what the configuration was last declared to be."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class DeclaredDocument(models.Model):
    """One document as it was applied; the newest is what drift is measured against."""

    text = models.TextField()
    """Without secrets: they stand in it by name."""
    by = models.CharField(_("applied by"), max_length=150)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    via = models.CharField(_("through"), max_length=10)
    """`form` or `command`."""
    at = models.DateTimeField(_("applied"), auto_now_add=True)
    changed = models.PositiveIntegerField(default=0)
    """How many things were different."""

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("applied document")
        verbose_name_plural = _("applied documents")

    def __str__(self) -> str:
        return f"{self.by} {self.at:%Y-%m-%d %H:%M}"
