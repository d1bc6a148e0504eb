"""What is known when all of this machine's processes are started anew: nothing of before runs."""

from collections.abc import Iterable

from django.db import transaction
from django.utils.translation import gettext_noop as _

from dashboard.choices import DeploymentStatus, JobKind, NodeStatus, RankStatus
from dashboard.lifecycle import jobs, replicas
from dashboard.lifecycle.changes import locked
from dashboard.lifecycle.failures import NOBODY
from dashboard.lifecycle.record import record
from dashboard.lifecycle.slots import change, laid_out, live_launches, settle
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
    if not deployment.wanted or deployment.status == DeploymentStatus.STOPPING:
        return
    laid_out(deployment)
    live = live_launches(deployment)
    lost = [
        slot
        for slot in deployment.slots.filter(wanted=True)
        if (slot.role, slot.index) not in live
        or not gone.isdisjoint(replicas.nodes_of(live[slot.role, slot.index]))
    ]
    if not lost:
        return
    record(Sentence(STARTED), deployment=deployment)
    for slot in lost:
        slot.deployment = deployment
        replicas.retire(slot)
        change(slot, given_up=False, reason=Sentence(STARTED), down_since=None, hold_until=None)
        jobs.create(
            deployment,
            JobKind.RESTART,
            slot=slot,
            by=NOBODY,
            automatic=True,
            reason=Sentence(STARTED),
        )
    settle(deployment)
