"""How long readings and roll-ups are kept."""

import logging
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

from monitoring.models import Due
from monitoring.storage import partitions
from monitoring.storage.levels import HOUR, LEVELS

log = logging.getLogger(__name__)

LAYOUT_GRACE = timedelta(days=1)
"""A fresh layout may still be waiting for its first minute."""
UNUSED = """
DELETE FROM monitoring_layout l
WHERE l.created < %(created)s AND (l.seen IS NULL OR l.seen < %(seen)s)
  AND NOT EXISTS (SELECT 1 FROM monitoring_reading r WHERE r.layout_id = l.id)
"""


def care(now: datetime | None = None) -> None:
    """Make what is needed next, drop what is too old. Every hour, and whenever a worker starts."""
    moment = now or timezone.now()
    made = partitions.ensure(moment)
    gone = [name for level in LEVELS for name in partitions.drop(level, moment - level.keep)]
    if made or gone:
        log.info("telemetry tables made: %s; dropped: %s", made or "none", gone or "none")
    Due.objects.filter(at__lt=moment - HOUR.keep).delete()
    with connection.cursor() as cursor:
        cursor.execute(UNUSED, {"created": moment - LAYOUT_GRACE, "seen": moment - HOUR.keep})
