"""Nodes: how they join, when they count as offline, and what that means for what runs there."""

from collections.abc import Mapping
from datetime import timedelta

import msgspec
from django.db import IntegrityError, connection, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.choices import LIVE_REPLICA_STATUSES, EventLevel, NodeStatus
from dashboard.configuration.node import cable_address
from dashboard.errors import StatusConflict
from dashboard.lifecycle.jobs import RECONCILE_TASK
from dashboard.lifecycle.neighbours import tell_neighbours
from dashboard.lifecycle.observation import node_went_offline
from dashboard.lifecycle.record import record
from dashboard.models import Node, Replica
from dashboard.models.fleet import hash_token
from dashboard.sentences import Sentence
from engine.protocol.agent import Inventory

HEARTBEAT_SECONDS = 1.0
SILENT_SECONDS = 4.0
"""Without a sign of life for this long, a node is offline."""
UNSEEN_SECONDS = 8.0
"""The same for a node whose web process went with its socket: signs are not written down each."""
LOOKS_AFTER = (0.0, 1.5, 3.0, 10.5)
"""Seconds after a node went offline at which what ran there is looked after."""


def create_node(name: str, address: str) -> tuple[Node, str]:
    """Add a node; the token is shown once. Raises StatusConflict when the name is taken."""
    node = Node(name=name, address=address)
    token = node.issue_token()
    try:
        with transaction.atomic():
            node.save()
            record(Sentence(_("Node %(node)s was added."), node=name), node=node)
    except IntegrityError as error:
        raise StatusConflict(
            Sentence(_("There is a node named %(node)s already."), node=name)
        ) from error
    return node, token


@transaction.atomic
def rotate_token(node: Node, address: str | None = None, *, routine: bool = False) -> str:
    """Replace the node's token; an agent with the old one is disconnected.

    A `routine` change, at every start of a local node, is not worth a line of history.
    """
    token = node.issue_token()
    moved = bool(address) and address != node.address
    node.address = address or node.address
    node.save(update_fields=["token_hash", "address"])
    if moved:
        tell_neighbours(node)
    if not routine:
        record(Sentence(_("Node %(node)s has a new token."), node=node.name), node=node)
    outbox.take_over(node.pk, "")
    return token


@transaction.atomic
def set_schedulable(node: Node, on: bool, by: object) -> None:
    """Open or close it for new ranks; what runs there already stays."""
    if not Node.objects.filter(pk=node.pk).exclude(schedulable=on).update(schedulable=on):
        return
    opened = _("Opened for new ranks by %(by)s.")
    closed = _("Closed for new ranks by %(by)s.")
    record(Sentence(opened if on else closed, by=str(by)), node=node)
    outbox.task(RECONCILE_TASK)  # Something may have waited for a place.


@transaction.atomic
def remove_node(node: Node, by: object) -> None:
    """Take it out of the fleet, with the history of what once ran on it.

    Raises StatusConflict while its agent is connected or something should run there.
    """
    locked_node = Node.objects.select_for_update(no_key=False).get(pk=node.pk)
    if locked_node.status == NodeStatus.ONLINE:
        raise StatusConflict(
            Sentence(_("%(node)s is online; stop its agent first."), node=locked_node.name)
        )
    there = Replica.objects.filter(Q(ranks__node=node) | Q(head_node=node))
    live = there.filter(status__in=LIVE_REPLICA_STATUSES).select_related("deployment").first()
    if live is not None:
        raise StatusConflict(
            Sentence(
                _("%(name)s still has a rank on %(node)s; stop it first."),
                name=live.deployment.name,
                node=locked_node.name,
            )
        )
    Replica.objects.filter(pk__in=there.values("pk")).delete()
    tell_neighbours(locked_node)
    locked_node.delete()
    record(Sentence(_("Node %(node)s was removed by %(by)s."), node=node.name, by=str(by)))
    outbox.announce("node", node.pk)


def node_with_token(token: str) -> Node | None:
    """Looked up by hash: how long it takes says nothing about any token."""
    return Node.objects.filter(token_hash=hash_token(token)).first()


@transaction.atomic
def connect(node_id: int, over: str, inventory: Inventory) -> Node:
    """The node's agent is here, over this connection; an older connection is closed."""
    now = timezone.now()
    before = Node.objects.get(pk=node_id)
    Node.objects.filter(pk=node_id).update(
        status=NodeStatus.ONLINE,
        reason=Sentence(),
        inventory=msgspec.to_builtins(inventory),
        link_address=cable_address(before.settings, inventory.link_address),
        last_seen=now,
        connected_at=now,
        connection=over,
        observed_generation=0,
    )
    node = Node.objects.get(pk=node_id)
    record(Sentence(_("Node %(node)s is online."), node=node.name), node=node)
    moved = not before.connected_at or before.link_address != node.link_address
    if moved and not inventory.simulated:
        tell_neighbours(node)
    if before.connection:
        outbox.take_over(node_id, over)
    if not inventory.simulated:  # Nothing waits for a place on one.
        outbox.task(RECONCILE_TASK)
    return node


def beat(signs: Mapping[int, str]) -> dict[int, int]:
    """Signs of life of nodes, each over a connection. Answers the generation of what each should
    run; a node that is missing there has been taken over by another connection."""
    nodes, connections = list(signs), list(signs.values())
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE dashboard_node AS node SET last_seen = %s"
            " FROM unnest(%s::bigint[], %s::text[]) AS sign(node, connection)"
            " WHERE node.id = sign.node AND node.connection = sign.connection"
            " RETURNING node.id, node.desired_generation",
            [timezone.now(), nodes, connections],
        )
        seen: dict[int, int] = dict(cursor.fetchall())
    lost = [node for node in nodes if node not in seen]
    found = [node for node in lost if _found_again(node, signs[node])]
    generations = Node.objects.filter(pk__in=found) if found else Node.objects.none()
    return seen | dict(generations.values_list("pk", "desired_generation"))


@transaction.atomic
def _found_again(node_id: int, over: str) -> bool:
    """Its silence was ours: nothing could be written down while the database was away."""
    lost = Node.objects.filter(pk=node_id, status=NodeStatus.OFFLINE, connection="")
    now, online = timezone.now(), NodeStatus.ONLINE
    if lost.update(status=online, reason=Sentence(), last_seen=now, connection=over) != 1:
        return False
    node = Node.objects.get(pk=node_id)
    record(Sentence(_("Node %(node)s is online."), node=node.name), node=node)
    outbox.task(RECONCILE_TASK)
    return True


def disconnect(node_id: int, over: str, reason: Sentence) -> bool:
    """The node cannot be seen any more; False when that connection was not the node's last."""
    with transaction.atomic():
        guard = Node.objects.filter(pk=node_id, connection=over, status=NodeStatus.ONLINE)
        if guard.update(status=NodeStatus.OFFLINE, reason=reason, connection="") != 1:
            return False
        node = Node.objects.get(pk=node_id)
        event = Sentence(_("Node %(node)s is offline: %(reason)s"), node=node.name, reason=reason)
        record(event, level=EventLevel.WARNING, node=node)
    node_went_offline(node)
    if _has_work(node):  # A fleet that is cut off at once need not be looked after node by node.
        for seconds in LOOKS_AFTER:
            outbox.task(RECONCILE_TASK, countdown=seconds)
    return True


def _has_work(node: Node) -> bool:
    live = Replica.objects.filter(status__in=LIVE_REPLICA_STATUSES)
    return live.filter(Q(ranks__node=node) | Q(head_node=node)).exists()


def expire_nodes() -> None:
    """Nodes that fell silent go offline."""
    silent = timezone.now() - timedelta(seconds=UNSEEN_SECONDS)
    for node in Node.objects.filter(status=NodeStatus.ONLINE, last_seen__lt=silent):
        reason = Sentence(
            _("nothing was heard from its agent for %(seconds)s s."), seconds=int(UNSEEN_SECONDS)
        )
        disconnect(node.pk, node.connection, reason)
