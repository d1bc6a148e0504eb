"""The monthly update, where it is switched on: the newest image that fits becomes a roll-out, once
a month for each kind of component. It waits for its approval like any other, unless the image has
one already, and begins in the maintenance window."""

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime

from django.utils import timezone

from dashboard import panel_settings
from dashboard.audit import PANEL
from dashboard.choices import Component
from dashboard.errors import StatusConflict
from dashboard.firmware import preapproval
from dashboard.firmware.fitting import fits
from dashboard.firmware.versions import Order, compare
from dashboard.lifecycle import updates
from dashboard.models import FirmwareImage, FirmwarePart, NodeUpdate, Rollout
from dashboard.updates.verifying import verify

log = logging.getLogger(__name__)

PLAN_TASK = "tandem.plan_firmware"


def make_due() -> None:
    """One roll-out at a time; what is left over has its turn when that one is over."""
    if not panel_settings.current()["firmware_automatic"]:
        return
    now = timezone.localtime()
    if Rollout.objects.filter(finished_at=None).exists():
        return
    for component in Component:
        if not _had_its_turn(component, now):
            for image, parts in _due(component):
                if _make(image, parts, now):
                    return


def _had_its_turn(component: Component, now: datetime) -> bool:
    begins = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    rows = Rollout.objects.filter(automatic=True, at__gte=begins)
    return rows.filter(image__component=component).exists()


def _due(component: Component) -> Iterator[tuple[FirmwareImage, list[FirmwarePart]]]:
    """Images with the parts that they are the newest for, one part a node."""
    images = list(FirmwareImage.objects.filter(component=component))
    rows = FirmwarePart.objects.filter(component=component, updatable=True)
    found: dict[int, dict[int, FirmwarePart]] = {}
    for part in rows.select_related("node").order_by("node__name", "name"):
        image = None if part.node.simulated else newest(images, part)
        if image is not None and not _was_tried(image, part):
            found.setdefault(image.pk, {}).setdefault(part.node_id, part)
    for image in images:
        if image.pk in found:
            yield image, list(found[image.pk].values())


def newest(images: Sequence[FirmwareImage], part: FirmwarePart) -> FirmwareImage | None:
    """The one that is newer than what runs and than all others; None where that cannot be told."""
    fitting = [one for one in images if fits(one.component, one.fits, part)]
    newer = [one for one in fitting if compare(one.version, part.active) == Order.NEWER]
    for image in newer:
        others = (compare(image.version, one.version) for one in newer if one is not image)
        if all(order in (Order.NEWER, Order.SAME) for order in others):
            return image
    return None


def _was_tried(image: FirmwareImage, part: FirmwarePart) -> bool:
    """What has failed on a node is not tried there again by itself."""
    rows = NodeUpdate.objects.filter(node=part.node_id, part_key=part.key)
    return rows.filter(rollout__image=image, started_at__isnull=False).exists()


def _make(image: FirmwareImage, parts: Sequence[FirmwarePart], now: datetime) -> bool:
    token = f"monthly-{now:%Y-%m}-{image.pk}"
    try:
        rollout = updates.draft(image, parts, token=token, reason="", actor=PANEL, automatic=True)
        verify(rollout)
        _approve(rollout, image)
    except StatusConflict as error:
        log.info("The monthly update with %s was not made: %s", image, error)
        return False
    return True


def _approve(rollout: Rollout, image: FirmwareImage) -> None:
    holder = preapproval.holder(image)
    rollout.refresh_from_db()
    if holder is not None and rollout.finished_at is None:
        updates.approve(rollout, holder, image.preapproved_why)
