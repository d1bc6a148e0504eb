"""Secrets that settings name: entered once, sealed, never shown again."""

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

NAME = r"[a-z0-9][a-z0-9._-]{0,62}"


class SecretKind(models.TextChoices):
    HUB_TOKEN = "hub-token", _("Token of a model hub")
    WEBHOOK_KEY = "webhook-key", _("Key of a webhook")
    PASSWORD = "password", _("Password")
    OTHER = "other", _("Something else")


class Secret(models.Model):
    """`sealed` by `monitoring.vault`; `dashboard.secrets` alone writes and reveals it."""

    name = models.CharField(
        _("name"),
        max_length=63,
        unique=True,
        validators=[
            RegexValidator(
                rf"\A{NAME}\Z",
                _("Small letters, digits, dots, dashes and underscores, like hub-token."),
            )
        ],
    )
    kind = models.CharField(_("kind"), max_length=12, choices=SecretKind.choices)
    sealed = models.TextField()
    hint = models.CharField(max_length=3, blank=True)
    """Its last characters, where it is long enough to spare them."""
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    changed = models.DateTimeField(_("changed"))
    last_used = models.DateTimeField(_("last used"), null=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("secret")
        verbose_name_plural = _("secrets")

    def __str__(self) -> str:
        return self.name
