"""What is no longer worth keeping."""

from datetime import datetime, timedelta

from django.utils import timezone

from monitoring.alerts.notify import deliver
from monitoring.models import Alert, Incident, Maintenance, Silence

LONE = timedelta(days=90)
"""Alerts that never became an incident, and silences that are over."""
INCIDENTS = timedelta(days=1096)
"""With their alerts and bundles."""


def forget(now: datetime | None = None) -> None:
    moment = now or timezone.now()
    Alert.objects.filter(incident=None, resolved__lt=moment - LONE).delete()
    Silence.objects.filter(until__lt=moment - LONE).delete()
    Maintenance.objects.filter(until__lt=moment - LONE).delete()
    old = Incident.objects.filter(closed__lt=moment - INCIDENTS)
    Alert.objects.filter(incident__in=old).delete()
    old.delete()
    deliver.forget(moment)
