"""API keys."""

import hashlib
import secrets
from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class ApiKey(models.Model):
    """A program's key. Shown once when made; only its SHA-256 is kept."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, verbose_name=_("user"), related_name="api_keys"
    )
    name = models.CharField(_("name"), max_length=80)
    prefix = models.CharField(_("starts with"), max_length=12, editable=False)
    hash = models.CharField(max_length=64, unique=True, editable=False)
    manages = models.BooleanField(
        _("may change configuration"),
        default=False,
        help_text=_("It does what its owner may do, not only ask for answers."),
    )
    asks = models.BooleanField(_("may ask models"), default=True)
    reads = models.BooleanField(_("may read models and metrics"), default=True)
    routes = models.JSONField(_("allowed models"), default=list, blank=True)
    """Names of routes; empty where it may ask all that its owner may."""
    expires = models.DateTimeField(_("expires"), null=True, blank=True)
    old_hash = models.CharField(max_length=64, blank=True, db_index=True, editable=False)
    """Of the secret before the last rotation, which is good until `old_until`."""
    old_until = models.DateTimeField(null=True, editable=False)
    created = models.DateTimeField(_("created"), auto_now_add=True)
    last_used = models.DateTimeField(_("last used"), null=True, blank=True, editable=False)
    revoked = models.DateTimeField(_("revoked"), null=True, blank=True)
    hidden_routes: frozenset[str] = frozenset()
    """Deployments of teams that its owner is no member of, as the gateway has last read them."""

    class Meta:
        ordering = ["-created"]
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @staticmethod
    def hash_of(key: str) -> str:
        return hashlib.sha256(key.encode()).hexdigest()

    def issue(self) -> str:
        """Set a fresh secret on this row, unsaved, and return it; it cannot be read again."""
        key = f"sk-tdm-{secrets.token_urlsafe(32)}"
        self.prefix = key[:12]
        self.hash = self.hash_of(key)
        return key

    def rotate(self, old_until: datetime) -> str:
        """The same with a new secret, unsaved; the one before is good until then."""
        self.old_hash, self.old_until = self.hash, old_until
        return self.issue()

    @property
    def expired(self) -> bool:
        return self.expires is not None and self.expires <= timezone.now()
