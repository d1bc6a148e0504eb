"""Incidents: what belongs together while anything of it fires, and the records kept of it."""

from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from monitoring.models.alerts import Severity


class Incident(models.Model):
    """Everything that fires of one node or one deployment, from the first alert to the last."""

    node = models.ForeignKey("dashboard.Node", models.SET_NULL, null=True, related_name="incidents")
    deployment = models.ForeignKey(
        "dashboard.Deployment", models.SET_NULL, null=True, related_name="incidents"
    )
    about = models.CharField(max_length=120)
    """The name of the node or deployment, kept though it may go; empty for the fleet."""
    title = models.CharField(max_length=80)
    """The name of its gravest rule; an English text or a user's words."""
    severity = models.CharField(_("severity"), max_length=10, choices=Severity.choices)
    opened = models.DateTimeField(_("opened"))
    closed = models.DateTimeField(_("closed"), null=True)
    reopened = models.PositiveSmallIntegerField(default=0)
    """Times that it went on a moment after it had ended."""
    simulated = models.BooleanField(default=False)
    """It is about boxes that are made up."""
    acknowledged = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["-opened", "-pk"]
        indexes = [models.Index(fields=["closed"], name="incident_by_end")]

    def __str__(self) -> str:
        name = gettext(self.title)
        return f"{name} · {self.about}" if self.about else name


class Note(models.Model):
    """What somebody wrote about an incident."""

    incident = models.ForeignKey(Incident, models.CASCADE, related_name="notes")
    at = models.DateTimeField(auto_now_add=True)
    by = models.CharField(max_length=150)
    text = models.TextField(_("note"), max_length=2000)

    class Meta:
        ordering = ["at"]

    def __str__(self) -> str:
        return self.text[:80]


class Bundle(models.Model):
    """A post-mortem: everything known of the seconds around, kept although readings age out."""

    incident = models.ForeignKey(Incident, models.CASCADE, related_name="bundles")
    asked_by = models.CharField(max_length=150, blank=True)
    """Empty: made because the incident is critical."""
    since = models.DateTimeField()
    until = models.DateTimeField()
    completes = models.DateTimeField()
    """What comes until then belongs to it."""
    completed = models.DateTimeField(null=True)
    content = models.BinaryField(default=b"")
    """JSON, gzipped."""
    sha256 = models.CharField(max_length=64, blank=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created", "-pk"]

    def __str__(self) -> str:
        return f"{self.incident_id} {self.until:%H:%M:%S}"
