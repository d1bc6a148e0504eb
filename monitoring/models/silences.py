"""When nobody wants to hear of an alert: silences, and maintenance that was planned."""

from datetime import datetime

from django.db import models
from django.utils.translation import gettext_lazy as _


class Hush(models.Model):
    """What both are: a time, a reason, somebody who asked for it, and what it covers."""

    starts = models.DateTimeField(_("from"))
    until = models.DateTimeField(_("until"))
    reason = models.CharField(_("reason"), max_length=200)
    by = models.CharField(max_length=150)
    node = models.ForeignKey(
        "dashboard.Node", models.CASCADE, verbose_name=_("node"), null=True, blank=True
    )
    deployment = models.ForeignKey(
        "dashboard.Deployment", models.CASCADE, verbose_name=_("deployment"), null=True, blank=True
    )
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True
        ordering = ["-until", "-pk"]

    def __str__(self) -> str:
        return self.reason

    def active(self, now: datetime) -> bool:
        return self.starts <= now < self.until


class Silence(Hush):
    """Alerts that match all of what is set are shown, but told to nobody."""

    rule = models.ForeignKey(
        "monitoring.Rule", models.CASCADE, verbose_name=_("rule"), null=True, blank=True
    )


class Maintenance(Hush):
    """Work on a node or a deployment, announced: its alerts are told to nobody meanwhile."""
