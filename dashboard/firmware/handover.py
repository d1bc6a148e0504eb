"""An address that was given out: found by its token, and used up by one whole fetch."""

from dataclasses import dataclass
from pathlib import Path

from django.db import transaction
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext_noop as _

from dashboard import audit
from dashboard.audit import Actor
from dashboard.firmware.store import path_of, plain_name
from dashboard.models import FirmwareFetch, Node
from dashboard.models.fleet import hash_token

REFUSED = _("There is nothing to fetch here: the address is not known, used or expired.")


@dataclass(frozen=True)
class Handover:
    """One answer that is about to be sent."""

    pk: int
    path: Path
    size: int
    sha256: str
    who: Actor


def find(token: str, name: str, bearer: str, address: str) -> Handover | None:
    """What the address stands for, to whoever may have it; None says no more than that."""
    digest = hash_token(token)
    row = (
        FirmwareFetch.objects.filter(token_hash=digest)
        .select_related("image", "update__node")
        .first()
    )
    if row is None or not constant_time_compare(row.token_hash, digest) or not row.open:
        return None
    if name != plain_name(row.image.name):
        return None
    node = row.update.node if row.update else None
    if row.by_agent and not _is_agent(bearer, node):
        return None
    path = path_of(row.image)
    if not path.is_file():
        return None
    named = node.name if node else "?"
    who = Actor(f"agent of {named}" if row.by_agent else f"BMC of {named}", None, "fetch", address)
    return Handover(row.pk, path, row.image.size, row.image.sha256, who)


def _is_agent(bearer: str, node: Node | None) -> bool:
    if not bearer:
        return False
    digest = hash_token(bearer)
    if node is not None:
        return constant_time_compare(node.token_hash, digest)
    return Node.objects.filter(token_hash=digest).exists()


def claim(pk: int, start: int) -> bool:
    """Before the last bytes leave: from then on nobody else gets them. Not for who skipped some."""
    claimed = FirmwareFetch.objects.filter(pk=pk, done_at=None, sent__gte=start)
    return bool(claimed.update(done_at=timezone.now()))


@transaction.atomic
def keep(handover: Handover, start: int, sent: int, *, claimed: bool, whole: bool) -> None:
    """Write down how far it got; a claim whose bytes did not leave is given up."""
    row = FirmwareFetch.objects.select_for_update().select_related("image").get(pk=handover.pk)
    if start <= row.sent:
        row.sent = max(row.sent, start + sent)
    if claimed and not whole:
        row.done_at = None
    row.save(update_fields=["sent", "done_at"])
    audit.note(
        handover.who,
        "firmware.fetch",
        row.image,
        after={"from": start, "bytes": sent, "whole": whole},
    )
