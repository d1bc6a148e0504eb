"""A node out of service: what runs there moves first, and nothing new comes.

Marking it is all that anybody asks for; `follow` makes the moves, again after every failure, until
the node is empty. A move is a job (`dashboard.jobs.move`).
"""

from datetime import timedelta

import msgspec
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import audit
from dashboard.audit import Actor
from dashboard.choices import (
    ACTIVE_JOB_STATUSES,
    LIVE_REPLICA_STATUSES,
    UNDERWAY_UPDATE_STATES,
    EventLevel,
    JobKind,
    JobStatus,
    ReplicaRole,
    ReplicaStatus,
)
from dashboard.errors import PlacementError, StatusConflict
from dashboard.lifecycle import jobs
from dashboard.lifecycle.capacity import find_placement
from dashboard.lifecycle.changes import locked
from dashboard.lifecycle.jobs import RECONCILE_TASK
from dashboard.lifecycle.record import record
from dashboard.models import Deployment, Job, Node, NodeUpdate, Replica, Slot
from dashboard.outbox import task
from dashboard.sentences import Sentence, sentence_of
from dashboard.ways_off import Held, Way, way_off
from engine.errors import EngineError

NOBODY = "Tandem"
RETRY = timedelta(seconds=30)
"""After a move that failed."""


class Clearance(msgspec.Struct, frozen=True):
    done: bool
    """Nothing of ours runs there any more."""
    left: Sentence
    """What is still there and what it waits for; or that nothing is."""


@transaction.atomic
def evacuate(node: Node, actor: Actor, why: Sentence) -> None:
    """Take it out of service; whoever asks twice asks once."""
    if Node.objects.filter(pk=node.pk, evacuated=False).update(evacuated=True) != 1:
        return
    node.evacuated = True
    record(
        Sentence(_("Taken out of service by %(by)s. %(why)s"), by=str(actor), why=why),
        level=EventLevel.WARNING,
        node=node,
    )
    audit.note(actor, "node.evacuate", node, why=str(why))
    task(RECONCILE_TASK)


@transaction.atomic
def give_back(node: Node, actor: Actor) -> None:
    """Take it into service again; what was copied elsewhere comes back.

    Raises StatusConflict while a firmware update holds it.
    """
    if held_by(node) is not None and actor != audit.PANEL:
        raise StatusConflict(
            Sentence(_("A firmware update holds %(node)s; release it there."), node=node.name)
        )
    if Node.objects.filter(pk=node.pk, evacuated=True).update(evacuated=False) != 1:
        return
    node.evacuated = False
    record(Sentence(_("Taken into service again by %(by)s."), by=str(actor)), node=node)
    audit.note(actor, "node.give_back", node)
    for deployment_id in _moved_from(node):
        _bring_home(deployment_id, node)
    task(RECONCILE_TASK)


def held_by(node: Node) -> NodeUpdate | None:
    """The firmware update that it is out of service for."""
    return node.updates.filter(state__in=UNDERWAY_UPDATE_STATES).first()


def clear(node: Node) -> Clearance:
    there = list(on_node(node, (*LIVE_REPLICA_STATUSES, ReplicaStatus.STOPPING)))
    if not there:
        return Clearance(True, Sentence(_("Nothing runs there.")))
    said: Sentence | None = None
    for deployment in {replica.deployment_id: replica.deployment for replica in there}.values():
        one = _waits_for(deployment, node)
        said = one if said is None else Sentence("%(some)s %(one)s", some=said, one=one)
    return Clearance(False, said or Sentence())


def on_node(node: Node, statuses: tuple[str, ...]) -> QuerySet[Replica]:
    """Launches with their head or a rank there."""
    here = Q(head_node=node) | Q(ranks__node=node)
    rows = Replica.objects.filter(here, status__in=statuses).distinct()
    return rows.select_related("deployment__model").order_by("pk")


def follow_all() -> None:
    """Begin the moves that are due; part of every reconcile."""
    for node in Node.objects.filter(evacuated=True):
        launches = on_node(node, tuple(LIVE_REPLICA_STATUSES))
        for deployment_id in sorted({replica.deployment_id for replica in launches}):
            _follow(deployment_id, node)


@transaction.atomic
def _follow(deployment_id: int, node: Node) -> None:
    deployment = locked(deployment_id)
    busy = deployment.jobs.filter(status__in=ACTIVE_JOB_STATUSES).exists()
    if not deployment.wanted or busy or _just_failed(deployment, node):
        return
    way = way_from(deployment, node)
    if way in (Way.NOTHING, Way.STUCK):
        return
    _begin(deployment, {"node": node.pk, "way": way.value, "home": False})


def _begin(deployment: Deployment, state: dict[str, object]) -> Job:
    job = jobs.create(deployment, JobKind.MOVE, by=NOBODY, automatic=True)
    job.state = state
    job.save(update_fields=["state"])
    return job


def way_from(deployment: Deployment, node: Node) -> Way:
    """How it can leave the node, as things stand."""
    here = {replica.pk for replica in on_node(node, tuple(LIVE_REPLICA_STATUSES))}
    launches = [
        Held(
            fallback=replica.role == ReplicaRole.FALLBACK,
            here=replica.pk in here,
            ready=replica.status == ReplicaStatus.READY,
        )
        for replica in deployment.replicas.filter(status__in=LIVE_REPLICA_STATUSES)
        if replica.role in (ReplicaRole.PRIMARY, ReplicaRole.FALLBACK)
        and replica.status != ReplicaStatus.DRAINING
    ]
    fallback = deployment.fallback_or_none is not None
    return way_off(launches, room=_why_no_copy(deployment, node) is None, fallback=fallback)


def _why_no_copy(deployment: Deployment, node: Node) -> Sentence | None:
    """None where a copy of its first replica fits elsewhere beside all that runs."""
    trial = Slot(deployment=deployment, role=ReplicaRole.CANDIDATE, index=0, avoid=[node.pk])
    try:
        find_placement(trial)
    except PlacementError as error:
        return error.sentence
    except EngineError as error:
        return sentence_of(error)
    return None


def _waits_for(deployment: Deployment, node: Node) -> Sentence:
    name = deployment.name
    job = deployment.jobs.filter(status__in=ACTIVE_JOB_STATUSES).first()
    if job is not None and job.kind == JobKind.MOVE:
        return Sentence(_("%(name)s is being moved."), name=name)
    if job is not None:
        return Sentence(_("%(name)s is busy with another job first."), name=name)
    if not deployment.wanted:
        return Sentence(_("%(name)s is being stopped."), name=name)
    if way_from(deployment, node) == Way.STUCK:
        return Sentence(
            _(
                "%(name)s would stop answering: it has no other replica and no fallback, and a "
                "copy has no room elsewhere. %(why)s Stop it, or give it a fallback."
            ),
            name=name,
            why=_why_no_copy(deployment, node),
        )
    failed = _failed_move(deployment, node)
    if failed is not None:
        return Sentence(_("%(name)s could not be moved: %(why)s"), name=name, why=failed.reason)
    return Sentence(_("%(name)s is still there."), name=name)


def _failed_move(deployment: Deployment, node: Node) -> Job | None:
    moves = deployment.jobs.filter(kind=JobKind.MOVE, state__node=node.pk)
    last = moves.order_by("-pk").first()
    return last if last is not None and last.status == JobStatus.FAILED else None


def _just_failed(deployment: Deployment, node: Node) -> bool:
    last = _failed_move(deployment, node)
    return bool(last and last.finished_at and timezone.now() - last.finished_at < RETRY)


def _moved_from(node: Node) -> list[int]:
    """Deployments that were copied away from it and have not been started anew since."""
    moves = Job.objects.filter(
        kind=JobKind.MOVE,
        status=JobStatus.DONE,
        state__node=node.pk,
        state__way=Way.COPY.value,
        state__home=False,
    )
    found = []
    for deployment_id in sorted(set(moves.values_list("deployment_id", flat=True))):
        last = moves.filter(deployment_id=deployment_id).order_by("-pk")[0]
        if Replica.objects.filter(
            pk__in=last.state.get("launches", []), status__in=LIVE_REPLICA_STATUSES
        ).exists():
            found.append(deployment_id)
    return found


def _bring_home(deployment_id: int, node: Node) -> None:
    deployment = locked(deployment_id)
    if deployment.wanted and not deployment.jobs.filter(status__in=ACTIVE_JOB_STATUSES).exists():
        _begin(deployment, {"node": node.pk, "way": Way.COPY.value, "home": True})
