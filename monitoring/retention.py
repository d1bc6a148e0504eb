"""How long readings are kept."""

from datetime import timedelta

from django.db import connection
from django.db.models import Exists, OuterRef
from django.utils import timezone

from monitoring.models import Layout, Reading

KEEP = timedelta(hours=24)
LAYOUT_GRACE = timedelta(hours=1)
"""A fresh layout may still be waiting for its first reading."""


def prune(keep: timedelta = KEEP) -> int:
    """Delete readings older than `keep` and layouts nothing uses; returns the readings deleted."""
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM monitoring_reading WHERE at < %s", [now - keep])
        deleted: int = cursor.rowcount
    used = Reading.objects.filter(layout=OuterRef("pk"))
    Layout.objects.filter(~Exists(used), created__lt=now - LAYOUT_GRACE).delete()
    return deleted
