"""What a node's BMC lists, asked now and written down."""

import logging
from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from dashboard import outbox
from dashboard.choices import Component
from dashboard.firmware.bmc import bmc_of
from dashboard.firmware.errors import BmcError
from dashboard.models import FirmwarePart, Node
from dashboard.models.firmware import Channel
from dashboard.sentences import Sentence
from engine.protocol.component_words import component_of
from monitoring.models import SourceKind
from monitoring.probes.outside import SourceError
from monitoring.probes.redfish.client import Bmc
from monitoring.probes.redfish.firmware import ListedPart, listed_parts

log = logging.getLogger(__name__)

PREFIX = "redfish:"
UNKNOWN_KEY = PREFIX
"""Of the row that stands for a BMC that was never read."""


def read_bmc(node: Node) -> list[FirmwarePart]:
    """The parts as the BMC lists them now; none where the node has no BMC. Raises BmcError when it
    does not answer: what it said before stays, with the reason beside it."""
    try:
        source = bmc_of(node)
        if source is None:
            node.firmware.filter(channel=Channel.REDFISH).delete()
            return []
        bmc = Bmc(source)
        try:
            listed = listed_parts(bmc)
        finally:
            bmc.close()
    except SourceError as error:
        _note_silence(node, Sentence(error.reason))
        raise BmcError(error.reason) from error
    except BmcError as error:
        _note_silence(node, error.sentence)
        raise
    _write(node, listed)
    return list(node.firmware.filter(channel=Channel.REDFISH))


def read_all_bmcs() -> None:
    """Every hour: one after another; one that does not answer costs the others nothing."""
    asked = Node.objects.filter(sources__kind=SourceKind.REDFISH).distinct()
    FirmwarePart.objects.filter(channel=Channel.REDFISH).exclude(node__in=asked).delete()
    for node in asked:
        try:
            read_bmc(node)
        except BmcError as error:
            log.warning("The firmware of %s cannot be read from its BMC: %s", node, error)


@transaction.atomic
def _write(node: Node, listed: Sequence[ListedPart]) -> None:
    Node.objects.select_for_update(no_key=True).get(pk=node.pk)
    now = timezone.now()
    for part in listed:
        FirmwarePart.objects.update_or_create(
            node=node,
            key=key_of(part.id),
            defaults={
                "component": component_of(part.id, part.name),
                "channel": Channel.REDFISH,
                "name": part.name,
                "model": part.model,
                "active": part.version,
                "staged": "" if part.staged == part.version else part.staged,
                "updatable": part.updatable,
                "reversible": None,
                "details": _details(part),
                "reason": Sentence(),
                "read_at": now,
            },
        )
    keys = [key_of(part.id) for part in listed]
    node.firmware.filter(channel=Channel.REDFISH).exclude(key__in=keys).delete()
    outbox.announce("firmware", node.pk)


def key_of(member: str) -> str:
    return f"{PREFIX}{member}"[:200]


def _details(part: ListedPart) -> dict[str, str]:
    told = {
        "path": part.path,
        "maker": part.maker,
        "released": part.released,
        "lowest": part.lowest,
        "state": part.state,
    }
    return {name: value for name, value in told.items() if value}


@transaction.atomic
def _note_silence(node: Node, reason: Sentence) -> None:
    known = node.firmware.filter(channel=Channel.REDFISH)
    if known.exists():
        known.update(reason=reason)
    else:
        FirmwarePart.objects.create(
            node=node,
            key=UNKNOWN_KEY,
            component=Component.BMC,
            channel=Channel.REDFISH,
            name="BMC",
            reason=reason,
            read_at=timezone.now(),
        )
    outbox.announce("firmware", node.pk)
