"""A launch or a job that failed: why, and whether to try again by itself.

The caller holds the deployment's row lock (`locked`).
"""

from datetime import datetime, timedelta

import msgspec
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard.choices import (
    ACTIVE_JOB_STATUSES,
    CRASHES,
    LIVE_REPLICA_STATUSES,
    DeploymentStatus,
    EventLevel,
    Fault,
    JobStatus,
    ReplicaStatus,
)
from dashboard.errors import PlacementError
from dashboard.lifecycle import jobs, replicas
from dashboard.lifecycle.capacity import find_placement
from dashboard.lifecycle.deployments import move, request_restart, say_why
from dashboard.lifecycle.record import record
from dashboard.models import Deployment, Event, Job, Replica
from dashboard.sentences import Sentence, sentence_of
from engine.errors import EngineError

CRASHES_UNTIL_GIVING_UP = 5
WINDOW = timedelta(minutes=10)
MOST_DELAY = 60.0
ROOT_WINDOW = timedelta(seconds=15)
"""Reports of one death reach us within this; later ones are about something else."""
NOBODY = "Tandem"
"""Who asked, when nobody did."""

FAILED = _("It failed: %(cause)s")


class Cause(msgspec.Struct, frozen=True):
    fault: Fault
    sentence: Sentence


def locked(deployment_id: int) -> Deployment:
    return Deployment.objects.select_for_update(no_key=True).get(pk=deployment_id)


def backoff(crashes: int) -> float:
    """Seconds before the restart after so many crashes: at once, then 2, 4, ... at most 60."""
    return 0.0 if crashes <= 1 else min(MOST_DELAY, 2.0 ** (crashes - 1))


def fail_replica(deployment: Deployment, replica: Replica, cause: Cause) -> None:
    """End the launch and, unless that is hopeless, have another one started."""
    if not replicas.fail(replica, reason=cause.sentence, fault=cause.fault):
        return
    record(
        Sentence(FAILED, cause=cause.sentence),
        level=EventLevel.ERROR,
        deployment=deployment,
        replica=replica,
    )
    jobs.end_active(deployment, JobStatus.FAILED, cause.sentence)
    if deployment.down_since is None:
        deployment.down_since = timezone.now()
        Deployment.objects.filter(pk=deployment.pk).update(down_since=deployment.down_since)
    restart_or_give_up(deployment, cause.sentence)


def explain_better(deployment: Deployment, replica: Replica, cause: Cause) -> None:
    """A later report names the root of a failure that has been acted on already."""
    if Fault(replica.fault).strength >= cause.fault.strength:
        return
    if not replica.ended_at or timezone.now() - replica.ended_at > ROOT_WINDOW:
        return
    changed = Replica.objects.filter(
        pk=replica.pk, status=ReplicaStatus.FAILED, fault=replica.fault
    )
    if changed.update(reason=cause.sentence, fault=cause.fault) != 1:
        return
    packed = Sentence(FAILED, cause=cause.sentence).pack()["params"]
    Event.objects.filter(replica=replica, message=FAILED).update(params=packed)
    Job.objects.filter(deployment=deployment, reason=replica.reason).update(reason=cause.sentence)
    if deployment.reason == replica.reason:
        say_why(deployment, cause.sentence)
    replica.reason, replica.fault = cause.sentence, cause.fault


def restart_or_give_up(deployment: Deployment, reason: Sentence) -> None:
    crashes = _recent_crashes(deployment)
    if crashes >= CRASHES_UNTIL_GIVING_UP:
        give_up(
            deployment,
            Sentence(
                _(
                    "It failed %(count)s times within 10 minutes, so it is no longer restarted. "
                    "Last cause: %(cause)s Look at its log, then press Deploy."
                ),
                count=crashes,
                cause=reason,
            ),
        )
        return
    if not restart_if_possible(deployment, reason, backoff(crashes)):
        move(deployment, DeploymentStatus.RESTARTING, reason=reason, ready_at=None)


def restart_if_possible(deployment: Deployment, reason: Sentence, delay: float = 0.0) -> bool:
    """Queue a restart if the ranks have a place now; False when they have none."""
    try:
        find_placement(deployment)
    except PlacementError:
        return False
    except EngineError as error:
        give_up(deployment, sentence_of(error))
        return True
    request_restart(deployment, NOBODY, automatic=True, reason=reason, delay=delay)
    return True


def give_up(deployment: Deployment, reason: Sentence) -> None:
    move(deployment, DeploymentStatus.FAILED, reason=reason, ready_at=None)
    record(Sentence("%(cause)s", cause=reason), level=EventLevel.ERROR, deployment=deployment)


def _recent_crashes(deployment: Deployment) -> int:
    since = timezone.now() - WINDOW
    asked = deployment.jobs.filter(automatic=False).order_by("-pk").first()
    return deployment.replicas.filter(
        status=ReplicaStatus.FAILED,
        fault__in=CRASHES,
        ended_at__gte=max(since, _created(asked, since)),
    ).count()


def _created(job: Job | None, otherwise: datetime) -> datetime:
    return job.created if job else otherwise


@transaction.atomic
def fail_job(job: Job, reason: Sentence) -> None:
    """A step could not be done or ran out of time: the deployment fails with it."""
    deployment = locked(job.deployment_id)
    if deployment.generation != job.generation:
        jobs.end(job, JobStatus.CANCELLED, Sentence(_("A newer request took its place.")))
        return
    if not jobs.end(job, JobStatus.FAILED, reason):
        return
    for replica in deployment.replicas.filter(status__in=LIVE_REPLICA_STATUSES):
        replicas.fail(replica, reason=reason, fault=Fault.DEADLINE)
    for replica in deployment.replicas.filter(status=ReplicaStatus.STOPPING):
        replicas.conclude(replica)
    give_up(deployment, reason)


def restart_orphan(deployment_id: int) -> None:
    """A deployment that should run, but nothing runs and nobody is at it: start it again."""
    with transaction.atomic():
        deployment = locked(deployment_id)
        busy = deployment.jobs.filter(status__in=ACTIVE_JOB_STATUSES).exists()
        lives = deployment.replicas.filter(status__in=LIVE_REPLICA_STATUSES).exists()
        should = deployment.wanted and deployment.status in (
            DeploymentStatus.STARTING,
            DeploymentStatus.READY,
            DeploymentStatus.RESTARTING,
        )
        if should and not busy and not lives:
            restart_if_possible(deployment, deployment.reason)
