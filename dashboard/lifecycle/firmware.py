"""What a node's firmware is, as its agent tells it."""

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from dashboard import outbox
from dashboard.models import FirmwarePart, Node
from dashboard.models.firmware import Channel
from dashboard.sentences import Sentence
from engine.protocol.firmware import Part

READ_TASK = "tandem.read_firmware"
"""Has the panel ask a node's BMC."""
AGENTS = (Channel.FWUPD, Channel.NPU, Channel.READ)
"""Channels that the agent reads; the panel itself asks BMCs."""


@transaction.atomic
def take_parts(node_id: int, parts: Sequence[Part]) -> None:
    """Replace what is known of the node through its agent."""
    node, now = Node.objects.select_for_update(no_key=True).get(pk=node_id), timezone.now()
    for part in parts:
        FirmwarePart.objects.update_or_create(
            node=node,
            key=part.key,
            defaults={
                "component": part.component,
                "channel": part.channel,
                "name": part.name,
                "model": part.model,
                "active": part.active,
                "staged": part.staged,
                "available": part.available,
                "updatable": part.updatable,
                "reversible": part.reversible,
                "details": part.details,
                "reason": Sentence.of(part.reason),
                "read_at": now,
            },
        )
    gone = node.firmware.filter(channel__in=AGENTS).exclude(key__in=[part.key for part in parts])
    gone.delete()
    outbox.announce("firmware", node.pk)
