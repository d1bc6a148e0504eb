"""What `dashboard.jobs.change` does to the rows: launches of before give way to proved new ones.

The caller of what writes holds the deployment's row lock (`changes.locked`).
"""

import http.client
from typing import Any

import msgspec
from django.db.models import QuerySet
from django.utils.translation import gettext_noop as _

from dashboard import canary, heads, outbox
from dashboard.canary import Measured
from dashboard.choices import (
    ACTIVE_JOB_STATUSES,
    ANSWERING_REPLICA_STATUSES,
    LIVE_REPLICA_STATUSES,
    FallbackMode,
    JobKind,
    JobStatus,
    ReplicaRole,
    ReplicaStatus,
    RevisionState,
)
from dashboard.configuration.engine import engine_config_of
from dashboard.lifecycle import (
    candidates,
    fallbacks,
    fitting,
    jobs,
    moves,
    replicas,
    revisions,
)
from dashboard.lifecycle.jobs import RECONCILE_TASK
from dashboard.lifecycle.preview import IN_PLACE
from dashboard.lifecycle.record import record
from dashboard.lifecycle.slots import change, settle
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
    """The newest, alive or not."""
    tried = deployment.replicas.filter(role=ReplicaRole.CANDIDATE, index=index)
    return tried.order_by("-pk").first()


def is_at(deployment: Deployment, slot: Slot) -> bool:
    """Whether a change has this place in hand: it decides itself what is started there."""
    job = deployment.jobs.filter(
        kind=JobKind.CHANGE,
        status__in=ACTIVE_JOB_STATUSES,
        revision__state=RevisionState.APPLYING,
    ).first()
    if job is None or slot.role != ReplicaRole.PRIMARY or "at" not in job.state:
        return False
    begun = job.state["way"] == IN_PLACE and slot.index == job.state["at"]
    return begun or slot.revision_id == job.revision_id


def lost(deployment: Deployment, revision: Revision) -> Sentence | None:
    """Why one of the launches that took over already is no more; None while all are there."""
    for slot in deployment.slots.filter(role=ReplicaRole.PRIMARY, revision=revision):
        slot.deployment = deployment
        last = slot.launches.first()
        if last is None or last.status not in ANSWERING_REPLICA_STATUSES:
            return ended(last)
    return None


def ended(replica: Replica | None) -> Sentence:
    """Why a launch answers no more."""
    return (replica.reason if replica else Sentence()) or Sentence(
        _("The new launch ended or stopped answering.")
    )


def count(deployment: Deployment, revision: Revision) -> int:
    """Replicas that are there before and after, each to be replaced."""
    return min(deployment.dp, int(revision.values.get("dp") or 1))


def make_room(deployment: Deployment, revision: Revision, state: dict[str, Any]) -> Sentence | None:
    """Let the present launch finish and end, with the fallback there before; None once it is
    gone."""
    if "stand_in" not in state:
        state["stand_in"] = _stand_in(deployment, revision)
    if _active(state["stand_in"]):
        return Sentence(_("The fallback comes up first."))
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


def _stand_in(deployment: Deployment, revision: Revision) -> list[int]:
    """Jobs that bring up the fallback, where nothing else would answer meanwhile and it fits."""
    fallback = deployment.fallback_or_none
    if fallback is None or deployment.dp > 1 or not fitting.fallback_fits(deployment, revision):
        return []
    return fallbacks.stand_in(deployment, Sentence(_("settings are changed.")))


def _active(pks: list[int]) -> int:
    return Job.objects.filter(pk__in=pks, status__in=ACTIVE_JOB_STATUSES).count()


def room_beside(deployment: Deployment, revision: Revision, state: dict[str, Any]) -> bool:
    """Whether the next candidate may be opened: what stood by for those before it ends first
    where there is no room for all."""
    crowded = primaries_of_before(deployment).exists() and fitting.no_place_beside(
        deployment, revision
    )
    if "leaving" not in state and not crowded:
        return True
    if see_off(deployment, state):
        return False
    del state["leaving"]
    return True


def primaries_of_before(deployment: Deployment) -> QuerySet[Replica]:
    """That stand by while those that replaced them are watched."""
    return deployment.replicas.filter(role=ReplicaRole.RETIRING, status__in=LIVE_REPLICA_STATUSES)


def bring_up(deployment: Deployment, revision: Revision, index: int) -> Job:
    slot = candidates.open_candidate(deployment, index, revision=revision)
    return candidates.bring_up(slot, BY)


def model_of(revision: Revision) -> Model:
    return Model.objects.get(name=revision.content["model"])


def verdict(new: Measured, old: Measured | None, revision: Revision) -> Sentence | None:
    before = revision.replaces.content.get("model") if revision.replaces else None
    model = model_of(revision)
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
    deployment.slots.filter(role=ReplicaRole.PRIMARY).update(revision=None)
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
    left = _active(state["leaving"])
    if left == 0:
        moves.tidy(deployment)
    return left


def set_live(deployment: Deployment, revision: Revision) -> str:
    """Have every engine take what it can while it runs; empty once all have, else the problem."""
    config = engine_config_of(revision.values)
    limits = {"target_itl": config.target_itl, "max_waiting": config.max_waiting}
    live = deployment.replicas.filter(status__in=LIVE_REPLICA_STATUSES)
    for replica in live.exclude(status=ReplicaStatus.DRAINING):
        told = replica.engine_config
        kept = msgspec.structs.replace(told, **limits)
        if kept == told:
            continue
        if replica.status != ReplicaStatus.READY:
            return str(ReplicaStatus(replica.status).label)
        try:
            status, body = heads.put(replica, "/limits", limits)
        except (OSError, http.client.HTTPException) as error:
            return str(error) or type(error).__name__
        if status != 200:
            return f"HTTP {status}: {body.decode(errors='replace')[:200]}"
        Replica.objects.filter(pk=replica.pk).update(config=msgspec.to_builtins(kept))
        replicas.nudge_nodes(replica)
    return ""
