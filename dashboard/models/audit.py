"""The audit trail. Rows are added (`dashboard.audit`), never changed: the database refuses it."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class AuditEntry(models.Model):
    """Who did what, from where; names rather than foreign keys, so that it outlives everything."""

    at = models.DateTimeField(_("time"), auto_now_add=True, db_index=True)
    actor = models.CharField(_("who"), max_length=150)
    user_id = models.BigIntegerField(null=True)
    via = models.CharField(_("through"), max_length=10)
    """`form`, `api`, `command`, `admin` or `panel`."""
    address = models.CharField(_("from"), max_length=45, blank=True)
    action = models.CharField(_("action"), max_length=60, db_index=True)
    """`deployment.stop`, `firmware.approve`, ..."""
    kind = models.CharField(_("kind"), max_length=30)
    target = models.CharField(_("what"), max_length=200)
    target_id = models.BigIntegerField(null=True)
    before = models.JSONField(_("before"), null=True)
    after = models.JSONField(_("after"), null=True)
    """Without secrets."""
    why = models.CharField(_("reason"), max_length=300, blank=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit trail")

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.target}"
