"""Whether a box is as fast as before: firmware and power supplies that come up wrong leave a box
that answers well and slowly."""

from datetime import UTC, datetime

from django.utils.translation import gettext_noop as _

from dashboard import canary
from dashboard.canary import CanaryError, Measured
from dashboard.choices import ANSWERING_REPLICA_STATUSES
from dashboard.lifecycle import evacuation, updates
from dashboard.models import Node, NodeUpdate, Replica
from dashboard.sentences import Sentence
from dashboard.updates import readings

SLOWER, SLOWER_SECONDS = 3.0, 0.02
"""Times the seconds a token that the same deployment took there before, and on top; less is other
work."""
ASKED = 2
"""Launches that are measured beforehand."""
STUCK = 0.6
"""Of the highest clock of the day before."""
LINK_SLOWER = 0.9

SLOW = _(
    "It takes %(now)s s a token, and %(before)s before. Look at its power supply, its cooling, and "
    "what else runs there."
)
STUCK_LOW = _(
    "%(device)s stays at %(now)s MHz under load, and reached %(before)s before. Take the box off "
    "the mains for a minute, then look at its power supply."
)
LINK = _("The cable runs at %(now)s Gbit/s, and did at %(before)s before.")


def remember(update: NodeUpdate) -> None:
    """While what runs there still answers; what cannot be told is not compared later."""
    if "speed" in update.memory:
        return
    node = update.node
    measured: dict[str, float] = {}
    answering = tuple(ANSWERING_REPLICA_STATUSES)
    # A processor's speed is that of all else it does; only accelerators come up in a slow state.
    launches = evacuation.on_node(node, answering)[:ASKED] if _has_accelerators(node) else ()
    for replica in launches:
        try:
            found = canary.measure(replica, replica.deployment.name)
        except CanaryError:
            continue
        measured[str(replica.deployment_id)] = found.per_token
    speed = {
        "per_token": measured,
        "clocks": readings.clocks_of_a_day(node),
        "links": readings.link_speeds(node),
    }
    updates.remember(update, speed=speed)


def _has_accelerators(node: Node) -> bool:
    return bool((node.inventory or {}).get("accelerators"))


def problem_of_link(update: NodeUpdate, node: Node) -> Sentence | None:
    before = _before(update, "links")
    now = readings.link_speeds(node) if before else {}
    for interface, speed in now.items():
        known = before.get(interface)
        if known is not None and speed < LINK_SLOWER * known:
            return Sentence(LINK, now=round(speed / 1e9, 1), before=round(known / 1e9, 1))
    return None


def problem_of_engine(
    update: NodeUpdate, node: Node, replica: Replica, measured: Measured
) -> Sentence | None:
    """After it has answered: by its own time a token, and by the clocks meanwhile."""
    if readings.is_held_back(node):
        return None
    before = _before(update, "per_token").get(str(replica.deployment_id))
    if before is not None and measured.per_token > SLOWER * before + SLOWER_SECONDS:
        return Sentence(SLOW, now=round(measured.per_token, 3), before=round(before, 3))
    return _stuck(update, node)


def _stuck(update: NodeUpdate, node: Node) -> Sentence | None:
    before = _before(update, "clocks")
    since = datetime.fromtimestamp(update.memory["serving"], tz=UTC)
    now = readings.clocks_since(node, since) if before else {}
    for device, clock in now.items():
        known = before.get(device)
        if known is not None and clock < STUCK * known:
            return Sentence(
                STUCK_LOW, device=device, now=round(clock / 1e6), before=round(known / 1e6)
            )
    return None


def _before(update: NodeUpdate, what: str) -> dict[str, float]:
    found: dict[str, float] = (update.memory.get("speed") or {}).get(what) or {}
    return found
