"""Launches that have a box of which nothing is heard: the head is asked what has become of them.

A silent agent is not a dead box: as long as the head answers, with all its ranks or while it waits
for them, nothing is taken from it.
"""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import heads
from dashboard.choices import (
    LIVE_REPLICA_STATUSES,
    Fault,
    NodeStatus,
    ReplicaStatus,
)
from dashboard.lifecycle.changes import locked
from dashboard.lifecycle.failures import Cause, fail_replica
from dashboard.lifecycle.observation import NODE_OFFLINE
from dashboard.lifecycle.slots import offline_nodes, settle
from dashboard.lifecycle.upturns import begin_recovering, end_recovering
from dashboard.models import Deployment, Node, Rank, Replica
from dashboard.sentences import Sentence
from engine.protocol.stats import EngineStats

GRACE = timedelta(seconds=10)
"""A box whose head cannot be reached either is gone after this long."""
LONGEST_RECOVERY = timedelta(seconds=60)


def judge() -> bool:
    """Look at every launch with a box that is away; whether there was any."""
    away = Node.objects.filter(status=NodeStatus.OFFLINE)
    live = Replica.objects.filter(status__in=LIVE_REPLICA_STATUSES)
    ranks = Rank.objects.filter(node__in=away).values("replica")
    found = live.filter(head_node__in=away) | live.filter(pk__in=ranks)
    for replica in found.distinct().select_related("head_node"):
        # Asked before the row is locked: it may take a second.
        stats = heads.ask_stats(replica)
        with transaction.atomic():
            deployment = locked(replica.deployment_id)
            replica.refresh_from_db()
            if replica.status in LIVE_REPLICA_STATUSES:
                _draw_conclusions(deployment, replica, stats)
    return bool(found)


def _draw_conclusions(deployment: Deployment, replica: Replica, stats: EngineStats | None) -> None:
    away = offline_nodes(replica)
    if not away:
        return
    if stats is None:
        if replica.head_node.name in away:
            _unreachable(deployment, replica, Sentence(NODE_OFFLINE, node=", ".join(away)))
        return
    if stats.status == "failed":
        cause = Sentence.of(stats.detail)
        fail_replica(deployment, replica, Cause(Fault.HEAD, cause))
    elif stats.status == "recovering":
        why = Sentence.of(stats.last_fault or stats.detail)
        begin_recovering(deployment, replica, why, stats.running + stats.waiting)
    elif stats.status == "ready":
        end_recovering(deployment, replica, stats.recovery_seconds)
    settle(deployment)


def _unreachable(deployment: Deployment, replica: Replica, why: Sentence) -> None:
    begin_recovering(deployment, replica, why)
    seen = Node.objects.get(pk=replica.head_node_id).last_seen
    if seen is None or timezone.now() - seen > GRACE:
        fail_replica(deployment, replica, Cause(Fault.NODE, why))
    else:
        settle(deployment)


def end_endless_recoveries() -> None:
    """A launch that has recovered for a minute will not; one for ten seconds is not waited for."""
    late = timezone.now() - LONGEST_RECOVERY
    for replica in Replica.objects.filter(status=ReplicaStatus.RECOVERING):
        with transaction.atomic():
            deployment = locked(replica.deployment_id)
            replica.refresh_from_db()
            if replica.status != ReplicaStatus.RECOVERING:
                continue
            if replica.recovering_since and replica.recovering_since < late:
                seconds = round(LONGEST_RECOVERY.total_seconds())
                sentence = Sentence(
                    _("It did not come back within %(seconds)s s."), seconds=seconds
                )
                fail_replica(deployment, replica, Cause(Fault.HEAD, sentence))
            else:
                settle(deployment)
