"""A deployment leaves a node, or comes back to it: what `dashboard.jobs.move` does to the rows.

A job's `state`: `node` to leave, `way` (ways_off.Way), `home` when it comes back; `children` bring
up what takes over, `leaving` end what was there, `launches` are those that took over. The caller
holds the deployment's row lock (`changes.locked`).
"""

from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext_noop as _

from dashboard.choices import (
    ACTIVE_JOB_STATUSES,
    LIVE_REPLICA_STATUSES,
    EventLevel,
    JobStatus,
    ReplicaRole,
    ReplicaStatus,
)
from dashboard.errors import PlacementError
from dashboard.lifecycle import candidates, fallbacks, jobs, replicas
from dashboard.lifecycle.capacity import find_placement
from dashboard.lifecycle.changes import locked
from dashboard.lifecycle.record import record
from dashboard.lifecycle.slots import settle, slot_of
from dashboard.models import Deployment, Job, Replica, Slot
from dashboard.sentences import Sentence
from dashboard.ways_off import Way
from engine.errors import EngineError

BY = "Tandem"


def begin(deployment: Deployment, state: dict[str, Any]) -> list[int]:
    """Have brought up what takes over; answers the jobs that do it."""
    match Way(state["way"]):
        case Way.COPY:
            return _copies(deployment, state)
        case Way.FALLBACK:
            cause = Sentence(_("a node is cleared."))
            return fallbacks.stand_in(deployment, cause, state["node"])
    return []


def _copies(deployment: Deployment, state: dict[str, Any]) -> list[int]:
    avoid = [] if state["home"] else [state["node"]]
    begun = []
    for replica in _primaries(deployment):
        if not state["home"] and state["node"] not in replicas.nodes_of(replica):
            continue
        slot = candidates.open_candidate(deployment, replica.index, avoid=avoid)
        if state["home"] and not _would_use(slot, state["node"]):
            candidates.close(slot)
            continue
        begun.append(candidates.bring_up(slot, BY).pk)
    return begun


def _would_use(slot: Slot, node_id: int) -> bool:
    try:
        placement = find_placement(slot)
    except (PlacementError, EngineError):
        return False
    return node_id in placement.ranks


def switch(deployment: Deployment, state: dict[str, Any]) -> None:
    """New requests go elsewhere, and what was there begins to end; fills in `state`."""
    if Way(state["way"]) == Way.COPY:
        slots = list(deployment.slots.filter(role=ReplicaRole.CANDIDATE))
        for slot in slots:
            slot.deployment = deployment
        state["launches"] = [candidates.promote(deployment, slot).pk for slot in slots]
        leaving = list(deployment.slots.filter(role=ReplicaRole.RETIRING))
    else:
        leaving = _slots_there(deployment, state)
    state["leaving"] = []
    for slot in leaving:
        slot.deployment = deployment
        job = candidates.see_off(slot, BY)
        if job is not None:
            state["leaving"].append(job.pk)
    settle(deployment)


def _slots_there(deployment: Deployment, state: dict[str, Any]) -> list[Slot]:
    again = Way(state["way"]) == Way.AGAIN
    role = ReplicaRole.FALLBACK if again else ReplicaRole.PRIMARY
    here = Q(head_node=state["node"]) | Q(ranks__node=state["node"])
    launches = deployment.replicas.filter(here, role=role, status__in=LIVE_REPLICA_STATUSES)
    return [slot_of(deployment, replica) for replica in launches.distinct()]


def tidy(deployment: Deployment) -> None:
    """Places that a move or a change no longer needs."""
    for slot in deployment.slots.filter(role__in=[ReplicaRole.CANDIDATE, ReplicaRole.RETIRING]):
        slot.deployment = deployment
        candidates.close(slot)


@transaction.atomic
def undo(job: Job, reason: Sentence) -> None:
    """A move that failed: what ran goes on, and what was to take over ends."""
    deployment = locked(job.deployment_id)
    if not jobs.end(job, JobStatus.FAILED, reason):
        return
    for child in Job.objects.filter(
        pk__in=job.state.get("children", []), status__in=ACTIVE_JOB_STATUSES
    ):
        jobs.end(child, JobStatus.CANCELLED, reason)
    tidy(deployment)
    record(
        Sentence(_("It could not be moved: %(why)s"), why=reason),
        level=EventLevel.WARNING,
        deployment=deployment,
    )
    settle(deployment)


def _primaries(deployment: Deployment) -> list[Replica]:
    rows = deployment.replicas.filter(role=ReplicaRole.PRIMARY, status__in=LIVE_REPLICA_STATUSES)
    return list(rows.exclude(status=ReplicaStatus.DRAINING).order_by("index"))
