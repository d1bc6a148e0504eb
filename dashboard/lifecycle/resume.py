"""What is known when all of this machine's processes are started anew: nothing of before runs."""

from collections.abc import Iterable

from django.db import transaction
from django.utils.translation import gettext_noop as _

from dashboard.choices import (
    DEPLOYMENT_TRANSITIONS,
    LIVE_REPLICA_STATUSES,
    DeploymentStatus,
    JobKind,
    NodeStatus,
    RankStatus,
)
from dashboard.lifecycle import jobs, replicas
from dashboard.lifecycle.deployments import move
from dashboard.lifecycle.failures import NOBODY, locked
from dashboard.lifecycle.record import record
from dashboard.models import Deployment, Node, Rank, Replica
from dashboard.sentences import Sentence

STARTED = _("Tandem was started again.")


def resume_on(names: Iterable[str]) -> None:
    """The agents of these nodes have ended with all their engines: start again what should run.

    Call it before new agents sign in. Deployments that run elsewhere are left alone.
    """
    nodes = list(Node.objects.filter(name__in=names))
    online = Node.objects.filter(pk__in=[node.pk for node in nodes], status=NodeStatus.ONLINE)
    online.update(status=NodeStatus.OFFLINE, reason=Sentence(STARTED), connection="")
    Rank.objects.filter(node__in=nodes).update(status=RankStatus.EXITED)
    Replica.objects.filter(head_node__in=nodes).update(head_status=RankStatus.EXITED)
    for pk in Deployment.objects.filter(wanted=True).values_list("pk", flat=True):
        _resume(pk, {node.pk for node in nodes})


@transaction.atomic
def _resume(deployment_id: int, gone: set[int]) -> None:
    deployment = locked(deployment_id)
    live = deployment.replicas.filter(status__in=LIVE_REPLICA_STATUSES).first()
    old = DeploymentStatus(deployment.status)
    elsewhere = live is not None and gone.isdisjoint(replicas.nodes_of(live))
    if elsewhere or DeploymentStatus.RESTARTING not in DEPLOYMENT_TRANSITIONS[old]:
        return
    move(
        deployment,
        DeploymentStatus.RESTARTING,
        generation=deployment.generation + 1,
        reason=Sentence(STARTED),
        ready_at=None,
        down_since=None,
    )
    replicas.retire(deployment)
    record(Sentence(STARTED), deployment=deployment)
    jobs.create(deployment, JobKind.RESTART, by=NOBODY, automatic=True, reason=Sentence(STARTED))
