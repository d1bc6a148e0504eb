"""What beat has done for firmware every hour."""

import logging
import time
from datetime import timedelta

from django.utils import timezone

from dashboard.firmware.arrival import forget_strays
from dashboard.firmware.errors import BmcError
from dashboard.firmware.inventory import read_all_bmcs, read_bmc
from dashboard.lifecycle.firmware import READ_TASK
from dashboard.models import FirmwareFetch, Node

__all__ = ["READ_TASK", "look_after"]

log = logging.getLogger(__name__)

STRAY_SECONDS = 24 * 3600.0
KEPT = timedelta(days=7)
"""How long an address that is no longer good is remembered."""


def look_after(node_id: int | None = None) -> None:
    """Ask the BMC of one node, or all of them; then also clear what uploads have left."""
    if node_id is None:
        read_all_bmcs()
        forget_strays(time.time() - STRAY_SECONDS)
        FirmwareFetch.objects.filter(expires_at__lt=timezone.now() - KEPT).delete()
        return
    node = Node.objects.filter(pk=node_id).first()
    if node is not None:
        try:
            read_bmc(node)
        except BmcError as error:  # The page shows it with its reason.
            log.warning("The firmware of %s cannot be read from its BMC: %s", node, error)
