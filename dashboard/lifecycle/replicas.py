"""Replicas: one launch from its start to its end."""

import random
import secrets
from collections.abc import Iterable

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.choices import (
    ACTIVE_JOB_STATUSES,
    LIVE_REPLICA_STATUSES,
    DeploymentStatus,
    RankStatus,
    ReplicaStatus,
)
from dashboard.errors import StatusConflict
from dashboard.lifecycle.record import record
from dashboard.models import Deployment, Job, Node, PortLease, Rank, Replica, Slot
from dashboard.placement import Placement
from dashboard.sentences import Sentence

GOING = (
    DeploymentStatus.STARTING,
    DeploymentStatus.READY,
    DeploymentStatus.RECOVERING,
    DeploymentStatus.DEGRADED,
    DeploymentStatus.RESTARTING,
)


@transaction.atomic
def start(job: Job, placement: Placement) -> Replica:
    """Make the job's replica with its ranks and ports, and tell the nodes. Once: a second call
    answers the same replica. Raises StatusConflict when the deployment has moved on, or the job
    was ended meanwhile: nobody would stop what a cancelled one starts.
    """
    deployment = Deployment.objects.select_for_update(no_key=True).get(pk=job.deployment_id)
    if "replica" in job.state:
        return Replica.objects.get(pk=job.state["replica"])
    if deployment.generation != job.generation or deployment.status not in GOING:
        raise StatusConflict(Sentence(_("%(name)s was changed meanwhile."), name=deployment.name))
    if not Job.objects.filter(pk=job.pk, status__in=ACTIVE_JOB_STATUSES).exists():
        raise StatusConflict(Sentence(_("%(name)s was changed meanwhile."), name=deployment.name))
    assert job.slot is not None
    replica = _create(job.slot, placement, gated=bool(job.state.get("gated")))
    job.state["replica"] = replica.pk
    job.save(update_fields=["state"])
    nudge_nodes(replica)
    outbox.announce("deployment", deployment.pk)
    return replica


def _create(slot: Slot, placement: Placement, *, gated: bool) -> Replica:
    launch, head = secrets.token_hex(6), Node.objects.get(pk=placement.head)
    http, control = _lease_ports(head, launch, 2)
    config = slot.engine_config
    replica = Replica.objects.create(
        deployment=slot.deployment,
        role=slot.role,
        index=slot.index,
        model=slot.served_model,
        launch=launch,
        token=secrets.token_urlsafe(32),
        config=msgspec.to_builtins(config),
        head_node=head,
        host=head.engine_address,
        http_port=http,
        control_port=control,
        gated=gated,
    )
    Rank.objects.bulk_create(
        Rank(
            replica=replica,
            rank=rank,
            stage=config.plan.stage(rank),
            stage_rank=config.plan.stage_rank(rank),
            node_id=node,
            planned_bytes=need,
        )
        for rank, (node, need) in enumerate(
            zip(placement.ranks, placement.bytes_per_rank, strict=True)
        )
    )
    return replica


def _lease_ports(node: Node, launch: str, count: int) -> list[int]:
    """Ports nobody else on the node was given; at random, so that a taken one is not met twice."""
    Node.objects.select_for_update(no_key=True).get(pk=node.pk)
    taken = set(node.port_leases.values_list("port", flat=True))
    free = [port for port in settings.ENGINE_PORTS if port not in taken]
    if len(free) < count:
        raise StatusConflict(
            Sentence(
                _("%(node)s has no free engine port left; widen TANDEM_ENGINE_PORTS."),
                node=node.name,
            )
        )
    ports = random.sample(free, count)
    PortLease.objects.bulk_create(PortLease(node=node, port=port, launch=launch) for port in ports)
    return ports


def retire(slot: Slot) -> None:
    """Ask its live launch to end: it leaves the desired state of its nodes."""
    for replica in slot.launches.filter(status__in=LIVE_REPLICA_STATUSES):
        if _end(replica, LIVE_REPLICA_STATUSES, status=ReplicaStatus.STOPPING):
            nudge_nodes(replica)


def retire_drained(slot: Slot) -> None:
    """End the launch that has finished its answers, unless it is needed again."""
    for replica in slot.launches.filter(status=ReplicaStatus.DRAINING):
        if _end(replica, {ReplicaStatus.DRAINING}, status=ReplicaStatus.STOPPING):
            nudge_nodes(replica)


def retire_all(deployment: Deployment) -> None:
    """The same for every launch of a deployment."""
    for replica in deployment.replicas.filter(status__in=LIVE_REPLICA_STATUSES):
        if _end(replica, LIVE_REPLICA_STATUSES, status=ReplicaStatus.STOPPING):
            nudge_nodes(replica)


def fail(replica: Replica, **fields: object) -> bool:
    """Mark a live launch failed and take it from its nodes; False when it no longer lived."""
    if not _end(replica, LIVE_REPLICA_STATUSES, status=ReplicaStatus.FAILED, **fields):
        return False
    nudge_nodes(replica)
    return True


def conclude(replica: Replica) -> None:
    """Every process of a stopping launch is gone."""
    if _end(replica, {ReplicaStatus.STOPPING}, status=ReplicaStatus.STOPPED):
        record(Sentence(_("Every process has ended.")), deployment=replica.deployment)


def _end(replica: Replica, old: Iterable[ReplicaStatus], **fields: object) -> bool:
    changes = {"ended_at": timezone.now(), **fields}
    guard = Replica.objects.filter(pk=replica.pk, status__in=list(old))
    if guard.update(**changes) != 1:
        return False
    for name, value in changes.items():
        setattr(replica, name, value)
    return True


def nodes_of(replica: Replica) -> list[int]:
    ranks = replica.ranks.values_list("node_id", flat=True)
    return sorted({replica.head_node_id, *ranks})


def nudge_nodes(replica: Replica) -> None:
    """The desired state of its nodes has changed; say so to their agents."""
    for node_id in nodes_of(replica):  # In order, or two transactions could wait for each other.
        Node.objects.filter(pk=node_id).update(desired_generation=F("desired_generation") + 1)
        outbox.nudge(node_id)


def all_ready(replica: Replica) -> bool:
    """Whether its head and every rank say so."""
    return replica.head_status == RankStatus.READY and all(
        rank.status == RankStatus.READY for rank in replica.ranks.all()
    )


def left_behind(replica: Replica) -> list[str]:
    """What still runs, as far as is known: `head`, `rank 0`, ..."""
    left = [] if replica.head_status == RankStatus.EXITED else ["head"]
    ranks = replica.ranks.exclude(status=RankStatus.EXITED).values_list("rank", flat=True)
    return left + [f"rank {rank}" for rank in ranks]
