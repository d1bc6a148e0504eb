"""What `dashboard.jobs.change` does to the rows: launches of before give way to proved new ones.

The caller of what writes holds the deployment's row lock (`changes.locked`).
"""

from typing import Any

import msgspec
from django.db import transaction
from django.utils.translation import gettext_noop as _

from dashboard import canary, heads, outbox
from dashboard.canary import Measured
from dashboard.choices import (
    ACTIVE_JOB_STATUSES,
    LIVE_REPLICA_STATUSES,
    EventLevel,
    FallbackMode,
    JobKind,
    JobStatus,
    ReplicaRole,
    ReplicaStatus,
    RevisionState,
)
from dashboard.configuration.engine import engine_config_of
from dashboard.lifecycle import candidates, jobs, moves, replicas, revisions
from dashboard.lifecycle.changes import locked
from dashboard.lifecycle.jobs import RECONCILE_TASK
from dashboard.lifecycle.record import record
from dashboard.lifecycle.slots import change, settle, slot_of
from dashboard.models import Deployment, Job, Model, Replica, Revision, Slot
from dashboard.sentences import Sentence

BY = "Tandem"
FEW, SHARE = 3, 0.2
"""So many answers that end in errors, and such a part of all, speak against a new launch."""


def primaries(deployment: Deployment) -> list[Replica]:
    rows = deployment.replicas.filter(role=ReplicaRole.PRIMARY, status__in=LIVE_REPLICA_STATUSES)
    return list(rows.select_related("deployment__model").order_by("index"))


def primary(deployment: Deployment, index: int) -> Replica | None:
    return next((one for one in primaries(deployment) if one.index == index), None)


def candidate(deployment: Deployment, index: int) -> Replica | None:
    return deployment.replicas.filter(
        role=ReplicaRole.CANDIDATE, index=index, status__in=LIVE_REPLICA_STATUSES
    ).first()


def count(deployment: Deployment, revision: Revision) -> int:
    """Replicas that are there before and after, each to be replaced."""
    return min(deployment.dp, int(revision.values.get("dp") or 1))


def make_room(deployment: Deployment, state: dict[str, Any]) -> Sentence | None:
    """Let the present launch finish and end; None once it is gone."""
    slot = deployment.slots.get(role=ReplicaRole.PRIMARY, index=state["at"])
    slot.deployment = deployment
    if "draining" not in state:
        job = candidates.see_off(slot, BY)
        state["draining"] = job.pk if job is not None else None
        settle(deployment)
    job = Job.objects.filter(pk=state["draining"], status__in=ACTIVE_JOB_STATUSES).first()
    if job is not None:
        step = job.steps.filter(status="running").first()
        return step.detail if step is not None and step.detail else Sentence(_("It ends."))
    del state["draining"]
    state["phase"] = "bring-up"
    return None


def bring_up(deployment: Deployment, revision: Revision, index: int) -> Job:
    slot = candidates.open_candidate(deployment, index, revision=revision)
    return candidates.bring_up(slot, BY)


def verdict(new: Measured, old: Measured | None, revision: Revision) -> Sentence | None:
    before = revision.replaces.content.get("model") if revision.replaces else None
    model = Model.objects.get(name=revision.content["model"])
    return canary.verdict(
        new,
        old,
        vocabulary=model.shape.vocab_size,
        same_model=before == model.name,
    )


def switch(deployment: Deployment, index: int) -> None:
    slot = deployment.slots.get(role=ReplicaRole.CANDIDATE, index=index)
    slot.deployment = deployment
    candidates.promote(deployment, slot)


def trouble(replica: Replica) -> Sentence | None:
    """What speaks against a launch that answers people now."""
    stats = heads.ask_stats(replica)
    if stats is None:
        return None  # Its agent tells whether it is gone.
    failed, ended = stats.endings.get("error", 0), sum(stats.endings.values())
    if failed < FEW or failed < SHARE * ended:
        return None
    return Sentence(
        _("%(failed)s of its first %(ended)s answers ended in errors."), failed=failed, ended=ended
    )


def take(deployment: Deployment, revision: Revision) -> None:
    """Settings, model, fallback and the number of replicas are the revision's from now on."""
    revision.refresh_from_db()
    if revision.state == RevisionState.CURRENT:
        return
    fallback_before = revisions.content_of(deployment)["fallback"]
    revisions.take(deployment, revision)
    for slot in deployment.slots.filter(role=ReplicaRole.PRIMARY, index__gte=deployment.dp):
        slot.deployment = deployment
        candidates.set_aside(slot)
    for index in range(deployment.dp):
        Slot.objects.get_or_create(deployment=deployment, role=ReplicaRole.PRIMARY, index=index)
    if fallback_before != revision.content.get("fallback"):
        _renew_fallback(deployment)
    record(
        Sentence(_("Revision %(number)s is in use."), number=revision.number),
        deployment=deployment,
    )
    settle(deployment)
    outbox.task(RECONCILE_TASK)


def _renew_fallback(deployment: Deployment) -> None:
    """Its launch ends; one with the new settings is started where it should always run."""
    fallback = deployment.fallback_or_none
    wanted = fallback is not None and fallback.mode == FallbackMode.RESIDENT
    for slot in deployment.slots.filter(role=ReplicaRole.FALLBACK):
        slot.deployment = deployment
        replicas.retire(slot)
        change(slot, wanted=wanted, given_up=False, reason=Sentence())
        if fallback is None:
            jobs.end_active(
                deployment, JobStatus.CANCELLED, Sentence(_("It is not needed.")), slot=slot
            )
            slot.delete()
    if fallback is not None:
        Slot.objects.get_or_create(
            deployment=deployment,
            role=ReplicaRole.FALLBACK,
            index=0,
            defaults={"wanted": wanted},
        )


def see_off(deployment: Deployment, state: dict[str, Any]) -> int:
    """How many launches of before are still ending."""
    retiring = list(deployment.slots.filter(role=ReplicaRole.RETIRING))
    if "leaving" not in state:
        state["leaving"] = []
        for slot in retiring:
            slot.deployment = deployment
            job = candidates.see_off(slot, BY)
            if job is not None:
                state["leaving"].append(job.pk)
    left = Job.objects.filter(pk__in=state["leaving"], status__in=ACTIVE_JOB_STATUSES).count()
    if left == 0:
        moves.tidy(deployment)
    return left


def set_live(deployment: Deployment, revision: Revision) -> str:
    """Have every engine take what it can while it runs; empty once all have, else the problem."""
    config = engine_config_of(revision.values)
    limits = {"target_itl": config.target_itl, "max_waiting": config.max_waiting}
    for replica in deployment.replicas.filter(status__in=LIVE_REPLICA_STATUSES):
        if replica.status == ReplicaStatus.READY:
            try:
                status, body = heads.put(replica, "/limits", limits)
            except OSError as error:
                return str(error) or type(error).__name__
            if status != 200:
                return f"HTTP {status}: {body.decode(errors='replace')[:200]}"
        told = replica.engine_config
        kept = msgspec.structs.replace(
            told, target_itl=config.target_itl, max_waiting=config.max_waiting
        )
        if kept != told:
            Replica.objects.filter(pk=replica.pk).update(config=msgspec.to_builtins(kept))
            replicas.nudge_nodes(replica)
    return ""


@transaction.atomic
def undo(job: Job, reason: Sentence) -> None:
    """A change that failed: the settings of before answer, by themselves and at once."""
    deployment = locked(job.deployment_id)
    if not jobs.end(job, JobStatus.FAILED, reason):
        return
    revision = job.revision
    if revision is None or revision.state == RevisionState.CURRENT:
        settle(deployment)  # It is in use; only the end of the old launches is late.
        return
    revisions.refuse(revision, reason)
    _end_children(job, reason)
    touched = range(job.state.get("at", 0) + 1) if "phase" in job.state else range(0)
    for index in touched:
        _bring_back(deployment, job, index, reason)
    for slot in deployment.slots.filter(role=ReplicaRole.CANDIDATE):
        slot.deployment = deployment
        if slot.launches.filter(status=ReplicaStatus.DRAINING).exists():
            candidates.see_off(slot, BY)
        else:
            candidates.close(slot)
    record(
        Sentence(
            _("Revision %(number)s was not taken: %(why)s The settings of before are in use."),
            number=revision.number,
            why=reason,
        ),
        level=EventLevel.ERROR,
        deployment=deployment,
    )
    settle(deployment)
    outbox.task(RECONCILE_TASK)


def _end_children(job: Job, reason: Sentence) -> None:
    named = [job.state.get("child"), job.state.get("draining")]
    for child in Job.objects.filter(pk__in=[pk for pk in named if pk]):
        jobs.end(child, JobStatus.CANCELLED, reason)


def _bring_back(deployment: Deployment, job: Job, index: int, reason: Sentence) -> None:
    if candidates.swap_back(deployment, index):
        return
    live = primary(deployment, index)
    if live is not None and live.status == ReplicaStatus.DRAINING:
        _keep_on(live)
        return
    if live is not None and _is_of(deployment, live):
        return
    slot = deployment.slots.get(role=ReplicaRole.PRIMARY, index=index)
    slot.deployment = deployment
    replicas.retire(slot)
    jobs.create(deployment, JobKind.RESTART, slot=slot, by=BY, automatic=True, reason=reason)


def _keep_on(replica: Replica) -> None:
    Replica.objects.filter(pk=replica.pk, status=ReplicaStatus.DRAINING).update(
        status=ReplicaStatus.READY
    )
    slot_of(replica.deployment, replica)


def _is_of(deployment: Deployment, replica: Replica) -> bool:
    """Whether it was started with the deployment's present settings."""
    same = replica.engine_config == deployment.engine_config
    return same and replica.model_id in (None, deployment.model_id)
