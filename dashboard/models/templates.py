"""Templates: engine settings that somebody kept under a name, for other deployments."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class SettingsTemplate(models.Model):
    """`values` are what differs from the defaults, so that it goes with any model."""

    name = models.SlugField(_("name"), max_length=63, unique=True)
    note = models.CharField(_("what it is for"), max_length=200, blank=True)
    values = models.JSONField(_("settings"), default=dict)
    by = models.CharField(_("made by"), max_length=150)
    changed = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("template")
        verbose_name_plural = _("templates")

    def __str__(self) -> str:
        return self.name
