"""What quiet hours and power caps ask of each node now, and what became of it."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

import msgspec
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.choices import LIVE_REPLICA_STATUSES
from dashboard.lifecycle.record import record
from dashboard.models import Node, Replica
from dashboard.sentences import Sentence
from engine.protocol.agent import Limits, LimitState
from monitoring.accounts.quiet import Rule, held
from monitoring.models import LimitSpan, NodeLimits, QuietRule

Heads = Sequence[tuple[str, int]]
"""Launches whose head is on a node, and their deployments."""

ONE_AT_A_TIME = 0x71756965
"""Of two workers the second waits for the first, and finds nothing left to do."""

OWN_CAP = _("Power cap of the node")
BEGINS = _("“%(rule)s” holds it back from now on.")
ENDS = _("It is not held back any more.")


def limits_for(node: Node, heads: Heads, at: datetime | None = None) -> Limits:
    return _limits(rules_in_force(), node, heads, at or timezone.now())


def rules_in_force() -> list[Rule]:
    return [row.rule for row in QuietRule.objects.filter(enabled=True)]


@transaction.atomic
def follow_schedule(at: datetime | None = None) -> None:
    """Tell every node whose limits are not what it was told last. May run twice at once."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ONE_AT_A_TIME])
    now, rules = at or timezone.now(), rules_in_force()
    known = {row.node_id: row for row in NodeLimits.objects.all()}
    capped = Node.objects.filter(settings__power_cap_watts__gt=0).exists()
    if not rules and not capped and not any(row.wanted for row in known.values()):
        return
    heads = _heads()
    for node in Node.objects.order_by("pk"):
        limits = _limits(rules, node, heads[node.pk], now)
        wanted = msgspec.to_builtins(limits) if limits.why else {}
        row = known.get(node.pk)
        before = row.wanted if row else {}
        if wanted != before:
            _tell(node, wanted, before, now)


def keep_states(node_id: int, states: list[LimitState]) -> None:
    """What the node's agent says of its limits; a node without any says nothing."""
    if not states:
        return
    packed = msgspec.to_builtins(states)
    NodeLimits.objects.filter(node=node_id).exclude(states=packed).update(
        states=packed, reported=timezone.now()
    )


def _heads() -> dict[int, list[tuple[str, int]]]:
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    live = Replica.objects.filter(status__in=LIVE_REPLICA_STATUSES).order_by("pk")
    for node, launch, deployment in live.values_list("head_node", "launch", "deployment"):
        found[node].append((launch, deployment))
    return found


def _limits(rules: Sequence[Rule], node: Node, heads: Heads, at: datetime) -> Limits:
    """What rules ask now, and the cap of the node's own settings at all times."""
    now = held(rules, node.pk, at)
    wished = {launch: now.batch_cap(deployment) for launch, deployment in heads}
    caps = {launch: rows for launch, rows in wished.items() if rows is not None}
    cap = node.settings.get("power_cap_watts")
    watts = [float(asked) for asked in (now.power_watts, cap) if asked]
    if not watts and now.clock_hertz is None and not caps:
        return Limits()  # A batch cap holds nothing back on a node without a head.
    return Limits(
        power_watts=min(watts, default=None),
        clock_hertz=now.clock_hertz,
        batch_caps=caps,
        why=now.why or OWN_CAP,
    )


def _tell(node: Node, wanted: dict[str, object], before: dict[str, object], now: datetime) -> None:
    fresh: dict[str, object] = {"wanted": wanted} if wanted else {"wanted": {}, "states": []}
    NodeLimits.objects.update_or_create(node=node, defaults=fresh)
    Node.objects.filter(pk=node.pk).update(desired_generation=F("desired_generation") + 1)
    outbox.nudge(node.pk)
    outbox.announce("node", node.pk)
    why = wanted.get("why", "")
    if why == before.get("why", ""):
        return
    LimitSpan.objects.filter(node=node, until=None).update(until=now)
    if why:
        LimitSpan.objects.create(node=node, since=now, why=str(why))
        rule = Sentence(str(why)) if why == OWN_CAP else str(why)
        record(Sentence(BEGINS, rule=rule), node=node)
    else:
        record(Sentence(ENDS), node=node)
