"""Launches that prove themselves before they take over, and those that they replace.

A candidate is a slot of its own: a job brings a launch up in it as in any other, but the gateway
gives it nothing. `promote` exchanges it with the primary in one transaction. The caller of all this
holds the deployment's row lock (`changes.locked`).
"""

from collections.abc import Sequence

from django.utils.translation import gettext_noop as _

from dashboard.choices import (
    ACTIVE_JOB_STATUSES,
    ANSWERING_REPLICA_STATUSES,
    LIVE_REPLICA_STATUSES,
    JobKind,
    JobStatus,
    ReplicaRole,
    ReplicaStatus,
)
from dashboard.errors import StatusConflict
from dashboard.lifecycle import jobs, replicas
from dashboard.lifecycle.record import record
from dashboard.lifecycle.slots import change, settle
from dashboard.models import Deployment, Job, Replica, Revision, Slot
from dashboard.sentences import Sentence


def open_candidate(
    deployment: Deployment,
    index: int,
    *,
    revision: Revision | None = None,
    avoid: Sequence[int] = (),
) -> Slot:
    """A place beside primary `index` for a launch with `revision`'s settings, or the present ones,
    on any node but those to `avoid` (primary keys)."""
    slot, _made = Slot.objects.update_or_create(
        deployment=deployment,
        role=ReplicaRole.CANDIDATE,
        index=index,
        defaults={
            "wanted": False,
            "given_up": False,
            "reason": Sentence(),
            "revision": revision,
            "avoid": list(avoid),
        },
    )
    slot.deployment = deployment
    return slot


def bring_up(slot: Slot, by: str) -> Job:
    """A job that starts a launch in the candidate's place and sees it answer."""
    return jobs.create(
        slot.deployment, JobKind.DEPLOY, slot=slot, by=by, automatic=True, gated=True
    )


def launch_of(slot: Slot) -> Replica | None:
    """What lives there."""
    return slot.launches.filter(status__in=LIVE_REPLICA_STATUSES).first()


def promote(deployment: Deployment, slot: Slot) -> Replica:
    """The candidate's launch answers from now on in place of the primary's, which gets no more
    requests and waits: it finishes its answers, or takes over again (`swap_back`).

    Raises StatusConflict when the candidate is not ready.
    """
    _make_way(deployment, slot.index, ReplicaRole.RETIRING)
    ready = deployment.replicas.filter(
        role=ReplicaRole.CANDIDATE, index=slot.index, status=ReplicaStatus.READY
    )
    new = ready.first()
    if new is None or ready.update(role=ReplicaRole.PRIMARY) != 1:
        raise StatusConflict(
            Sentence(_("What was to take over in %(name)s is not ready."), name=deployment.name)
        )
    primary = _as_good_as_new(deployment, slot.index, slot.revision)
    slot.jobs.update(slot=primary)  # What it did stays on record.
    slot.delete()
    record(
        Sentence(_("Launch %(launch)s takes over."), launch=new.launch),
        deployment=deployment,
        replica=new,
    )
    settle(deployment)
    return new


def swap_back(deployment: Deployment, index: int) -> bool:
    """Undo `promote`: the launch of before answers again, the new one finishes its answers as a
    candidate. False when the one of before lives no more."""
    old = _live(deployment, ReplicaRole.RETIRING, index)
    if old is None or old.status != ReplicaStatus.DRAINING:
        return False
    _make_way(deployment, index, ReplicaRole.CANDIDATE)
    over = [ReplicaStatus.FAILED, ReplicaStatus.STOPPED]
    tried = deployment.replicas.filter(role=ReplicaRole.PRIMARY, index=index, pk__gt=old.pk)
    tried.filter(status__in=over).update(role=ReplicaRole.CANDIDATE)  # Nothing against the place.
    _become(old, ReplicaRole.PRIMARY, ReplicaStatus.READY)
    deployment.slots.filter(role=ReplicaRole.RETIRING, index=index).delete()
    _as_good_as_new(deployment, index, None)
    record(
        Sentence(_("Launch %(launch)s answers again."), launch=old.launch),
        deployment=deployment,
        replica=old,
    )
    settle(deployment)
    return True


def see_off(slot: Slot, by: str) -> Job | None:
    """A job that lets what lives there finish its answers and ends it; None where nothing does."""
    if launch_of(slot) is None and not _ending(slot):
        return None
    starting = slot.launches.filter(status=ReplicaStatus.STARTING).exists()
    if starting:
        replicas.retire(slot)
    slot.launches.filter(status__in=[ReplicaStatus.READY, ReplicaStatus.RECOVERING]).update(
        status=ReplicaStatus.DRAINING
    )
    return jobs.create(slot.deployment, JobKind.DRAIN, slot=slot, by=by, automatic=True)


def set_aside(slot: Slot) -> None:
    """A primary that is wanted no more: it finishes its answers as one of before."""
    live = _live(slot.deployment, ReplicaRole.PRIMARY, slot.index)
    if live is not None:
        _become(live, ReplicaRole.RETIRING, ReplicaStatus.DRAINING)
        _place(slot.deployment, ReplicaRole.RETIRING, slot.index)
    jobs.end_active(
        slot.deployment, JobStatus.CANCELLED, Sentence(_("It is not needed.")), slot=slot
    )
    slot.delete()


def sweep(deployment: Deployment) -> None:
    """See off what finishes its answers with nobody to end it, and remove the places of moves and
    changes that are over and in which nothing lives any more."""
    alive = [*LIVE_REPLICA_STATUSES, ReplicaStatus.STOPPING]
    for slot in deployment.slots.exclude(role=ReplicaRole.PRIMARY):
        slot.deployment = deployment
        if slot.jobs.filter(status__in=ACTIVE_JOB_STATUSES).exists():
            continue
        if slot.launches.filter(status=ReplicaStatus.DRAINING).exists():
            jobs.create(deployment, JobKind.DRAIN, slot=slot, automatic=True)
        elif not slot.is_fallback and not slot.launches.filter(status__in=alive).exists():
            slot.delete()


def close(slot: Slot) -> None:
    """End what is left there at once, and the place."""
    jobs.end_active(
        slot.deployment,
        JobStatus.CANCELLED,
        Sentence(_("It is not needed.")),
        slot=slot,
    )
    replicas.retire(slot)
    if not _ending(slot):
        slot.delete()


def _ending(slot: Slot) -> bool:
    return slot.launches.filter(status=ReplicaStatus.STOPPING).exists()


def _make_way(deployment: Deployment, index: int, role: ReplicaRole) -> None:
    """Whatever is in the primary's place gets another role: what answers finishes its answers, what
    does not answer yet ends. Nothing goes on working on the place: it would start one more there.
    """
    slot = _place(deployment, ReplicaRole.PRIMARY, index)
    jobs.end_active(deployment, JobStatus.CANCELLED, Sentence(_("It is not needed.")), slot=slot)
    slot.launches.filter(status__in=ANSWERING_REPLICA_STATUSES).update(
        status=ReplicaStatus.DRAINING, recovering_since=None
    )
    if slot.launches.filter(status=ReplicaStatus.STARTING).exists():
        replicas.retire(slot)
    there = slot.launches.filter(status__in=[ReplicaStatus.DRAINING, ReplicaStatus.STOPPING])
    if there.update(role=role):
        _place(deployment, role, index)


def _as_good_as_new(deployment: Deployment, index: int, revision: Revision | None) -> Slot:
    """The primary's place, in which a launch with these settings has just begun to answer."""
    slot = _place(deployment, ReplicaRole.PRIMARY, index)
    change(slot, wanted=True, reason=Sentence(), given_up=False, down_since=None, revision=revision)
    return slot


def _live(deployment: Deployment, role: ReplicaRole, index: int) -> Replica | None:
    return deployment.replicas.filter(
        role=role, index=index, status__in=LIVE_REPLICA_STATUSES
    ).first()


def _become(replica: Replica, role: ReplicaRole, status: ReplicaStatus) -> None:
    Replica.objects.filter(pk=replica.pk).update(role=role, status=status, recovering_since=None)
    replica.role, replica.status = role, status


def _place(deployment: Deployment, role: ReplicaRole, index: int) -> Slot:
    slot, _made = Slot.objects.get_or_create(
        deployment=deployment,
        role=role,
        index=index,
        defaults={"wanted": role == ReplicaRole.PRIMARY},
    )
    slot.deployment = deployment
    return slot
