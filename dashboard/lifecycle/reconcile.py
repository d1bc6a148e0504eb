"""The periodic guarantee behind every message that may be lost."""

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.choices import ACTIVE_JOB_STATUSES, DeploymentStatus, JobKind, NodeStatus
from dashboard.lifecycle import evacuation, jobs, offline, replicas, updates
from dashboard.lifecycle.changes import locked
from dashboard.lifecycle.failures import fail_job
from dashboard.lifecycle.nodes import expire_nodes
from dashboard.lifecycle.returns import fill_slots
from dashboard.models import Deployment, LogLine, Node
from dashboard.sentences import Sentence
from dashboard.wishes import days

GIVEN_UP = _("Its worker was lost %(count)s times at the same step; look at the worker's log.")
LOG_ROWS = 200_000


def reconcile() -> None:
    """Expire silent nodes, ask after what ran there, take up lost jobs, fill empty slots, tell the
    agents that are behind their state again."""
    expire_nodes()
    offline.judge()
    offline.end_endless_recoveries()
    for job in jobs.resume_overdue():
        fail_job(job, Sentence(GIVEN_UP, count=job.resumes))
    for pk in Deployment.objects.filter(wanted=True).values_list("pk", flat=True):
        fill_slots(pk)
    evacuation.follow_all()
    updates.start_due()
    updates.resume_overdue()
    for pk in Deployment.objects.filter(status=DeploymentStatus.STOPPING).values_list(
        "pk", flat=True
    ):
        _stop_orphan(pk)
    online = Node.objects.filter(status=NodeStatus.ONLINE)
    behind = online.filter(observed_generation__lt=F("desired_generation"))
    for pk in behind.values_list("pk", flat=True):
        outbox.nudge(pk)


@transaction.atomic
def _stop_orphan(deployment_id: int) -> None:
    deployment = locked(deployment_id)
    busy = deployment.jobs.filter(status__in=ACTIVE_JOB_STATUSES).exists()
    if deployment.status == DeploymentStatus.STOPPING and not busy:
        replicas.retire_all(deployment)
        jobs.create(deployment, JobKind.STOP)


def prune_log() -> None:
    """Old lines go, and the oldest of too many."""
    LogLine.objects.filter(at__lt=timezone.now() - days("keep_log_days")).delete()
    newest = LogLine.objects.order_by("-pk").values_list("pk", flat=True).first()
    if newest is not None:
        LogLine.objects.filter(pk__lte=newest - LOG_ROWS).delete()
