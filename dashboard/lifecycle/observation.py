"""From a node's report to the statuses of ranks, replicas and deployments."""

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.choices import (
    LIVE_REPLICA_STATUSES,
    DeploymentStatus,
    EventLevel,
    Fault,
    RankStatus,
    ReplicaStatus,
)
from dashboard.lifecycle import jobs, replicas
from dashboard.lifecycle.changes import locked
from dashboard.lifecycle.failures import Cause, explain_better, fail_replica
from dashboard.lifecycle.limits import keep_states
from dashboard.lifecycle.orders import heed
from dashboard.lifecycle.phases import keep_phases
from dashboard.lifecycle.record import record
from dashboard.lifecycle.reports import (
    Fields,
    Report,
    read_head,
    read_rank,
    restart_cause,
    why_recovering,
)
from dashboard.lifecycle.slots import change, offline_nodes, settle, slot_of
from dashboard.lifecycle.upturns import begin_recovering, end_recovering, launched
from dashboard.models import Deployment, Node, PortLease, Rank, Replica
from dashboard.sentences import Sentence
from engine.protocol.agent import Observed

NODE_OFFLINE = _("%(node)s is offline.")


def observe(node_id: int, connection: str, observed: Observed) -> None:
    """Take in a node's whole observed state; ignored when it comes over an old connection."""
    current = Node.objects.filter(pk=node_id, connection=connection)
    node = current.first()
    if node is None:
        return
    if node.observed_generation != observed.generation:
        current.update(observed_generation=observed.generation)
    for deployment_id, replica_ids in _concerned(node).items():
        with transaction.atomic():
            deployment = locked(deployment_id)
            node.refresh_from_db(fields=["desired_generation"])
            _observe_deployment(deployment, node, observed, replica_ids)
    _release_ports(node, observed)
    keep_states(node.pk, observed.limits)
    heed(node.pk, observed.orders)
    keep_phases(node.pk, observed.engines)


def _concerned(node: Node) -> dict[int, list[int]]:
    """Replicas that have something on the node which is not known to have ended."""
    ranks = Rank.objects.filter(node=node).exclude(status=RankStatus.EXITED)
    heads = Q(head_node=node) & ~Q(head_status=RankStatus.EXITED)
    found = Replica.objects.filter(Q(pk__in=ranks.values("replica")) | heads).order_by("pk")
    groups: dict[int, list[int]] = {}
    for replica in found:
        groups.setdefault(replica.deployment_id, []).append(replica.pk)
    return dict(sorted(groups.items()))


def _observe_deployment(
    deployment: Deployment, node: Node, observed: Observed, replica_ids: list[int]
) -> None:
    found = deployment.replicas.filter(pk__in=replica_ids).select_related("head_node")
    for replica in found.order_by("pk"):
        replica.deployment = deployment
        report = Report.of(node, observed, replica.launch)
        causes = _update_rows(report, replica)
        _draw_conclusions(deployment, replica, report, causes)


def _update_rows(report: Report, replica: Replica) -> list[Cause]:
    """Write what changed; answer why the launch would be over."""
    causes = []
    progressed = False
    for rank in replica.ranks.select_related("node"):
        fields, cause = read_rank(report, replica, rank)
        here = rank.node_id == report.node.pk
        if here and report.rank_process(rank) is None and _gone(report, replica, rank.pid):
            fields, cause = {"status": RankStatus.EXITED}, None
        _tell_restart(replica, restart_cause(report, rank))
        progressed |= _write(rank, fields)
        causes += [cause] if cause else []
    if replica.head_node_id == report.node.pk:
        fields, cause = read_head(report, replica)
        if report.head_process() is None and _gone(report, replica, replica.head_pid):
            fields, cause = {"head_status": RankStatus.EXITED}, None
        progressed |= _write(replica, fields)
        causes += [cause] if cause else []
    if progressed:
        outbox.announce_progress(replica.deployment_id)
    return causes


def _tell_restart(replica: Replica, why: Sentence | None) -> None:
    """Why a rank is being started again, kept: the head only knows that it has gone."""
    if why is not None:
        sentence = Sentence("%(cause)s", cause=why)
        owner = replica.deployment
        record(sentence, level=EventLevel.WARNING, deployment=owner, replica=replica)


def _gone(report: Report, replica: Replica, pid: int | None) -> bool:
    """An absent process of a launch that should not run has ended, or never began."""
    over = replica.status not in LIVE_REPLICA_STATUSES
    return over and (report.current or pid is not None)


def _write(row: Rank | Replica, fields: Fields) -> bool:
    changes = {name: value for name, value in fields.items() if getattr(row, name) != value}
    if not changes:
        return False
    for name, value in changes.items():
        setattr(row, name, value)
    row.save(update_fields=list(changes))
    return True


def _draw_conclusions(
    deployment: Deployment, replica: Replica, report: Report, causes: list[Cause]
) -> None:
    best = max(causes, key=lambda cause: cause.fault.strength, default=None)
    if replica.status in LIVE_REPLICA_STATUSES:
        if best:
            fail_replica(deployment, replica, _deepest(best, replica))
        elif replica.head_node_id == report.node.pk:
            _follow_head(deployment, replica, report)
        elif replica.status == ReplicaStatus.STARTING and replicas.all_ready(replica):
            launched(deployment, replica)
    elif replica.status == ReplicaStatus.FAILED:
        for cause in causes:
            if cause.fault != Fault.STOPPED:  # What was asked to end has ended: no explanation.
                explain_better(deployment, replica, cause)
    elif replica.status == ReplicaStatus.STOPPING and not replicas.left_behind(replica):
        replicas.conclude(replica)
        jobs.hurry(deployment)


def _deepest(cause: Cause, replica: Replica) -> Cause:
    """A head that waited in vain for a box that is away has its cause there."""
    away = offline_nodes(replica)
    if not away or cause.fault.strength >= Fault.NODE.strength:
        return cause
    return Cause(Fault.NODE, Sentence(NODE_OFFLINE, node=", ".join(away)))


def _follow_head(deployment: Deployment, replica: Replica, report: Report) -> None:
    """A launch as its head says now."""
    if replica.status == ReplicaStatus.STARTING and replicas.all_ready(replica):
        launched(deployment, replica)
    elif replica.status == ReplicaStatus.READY and report.recovers:
        begin_recovering(deployment, replica, why_recovering(report), report.waiting)
    elif replica.status == ReplicaStatus.RECOVERING:
        if report.stats and report.stats.status == "ready" and replicas.all_ready(replica):
            end_recovering(deployment, replica, report.stats.recovery_seconds)
        elif report.recovers:
            change(slot_of(deployment, replica), reason=why_recovering(report))
            settle(deployment)
    elif deployment.reason or deployment.status != DeploymentStatus.READY:
        settle(deployment)


def node_went_offline(node: Node) -> None:
    """Its ranks cannot be seen for now; the engines may well go on."""
    for deployment_id, replica_ids in _concerned(node).items():
        with transaction.atomic():
            deployment = locked(deployment_id)
            for replica in deployment.replicas.filter(
                pk__in=replica_ids, status__in=LIVE_REPLICA_STATUSES
            ):
                reason = Sentence(NODE_OFFLINE, node=node.name)
                ranks = replica.ranks.filter(node=node).exclude(status=RankStatus.EXITED)
                ranks.update(status=RankStatus.WAITING, detail=reason)
            settle(deployment)
            outbox.announce("deployment", deployment.pk)


def _release_ports(node: Node, observed: Observed) -> None:
    """Ports whose launch is over and has no process left on the node."""
    node.refresh_from_db(fields=["desired_generation"])
    if observed.generation < node.desired_generation:
        return
    running = {state.launch for state in observed.processes}
    live = Replica.objects.filter(status__in=LIVE_REPLICA_STATUSES)
    leases = PortLease.objects.filter(node=node).exclude(launch__in=running)
    leases.exclude(launch__in=live.values("launch")).delete()
