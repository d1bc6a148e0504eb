"""What a deployment is, taken together, from what its slots are. Pure."""

from collections.abc import Sequence

import msgspec

from dashboard.choices import DeploymentStatus, ReplicaStatus


class SlotState(msgspec.Struct, frozen=True, kw_only=True):
    """One place that a launch fills or should fill."""

    fallback: bool = False
    wanted: bool = True
    given_up: bool = False
    launch: ReplicaStatus | None = None
    """Of the launch that lives there; None for none."""
    underway: bool = False
    """A job is bringing a launch up, and not only after a pause."""
    lost: bool = False
    """Its launch does not answer, and a box of it cannot be reached or it takes too long."""

    @property
    def ready(self) -> bool:
        return self.launch == ReplicaStatus.READY

    @property
    def recovering(self) -> bool:
        return self.launch == ReplicaStatus.RECOVERING

    @property
    def comes(self) -> bool:
        """Whether it is worth waiting for."""
        return not self.lost and (self.underway or self.launch is not None)


def standing(slots: Sequence[SlotState], *, was_up: bool) -> DeploymentStatus:
    """Status of a deployment that should run; `was_up` once it answered or a launch of it failed.

    Raises nothing: without any slot it is on its way.
    """
    primaries = [slot for slot in slots if not slot.fallback]
    if primaries and all(slot.ready for slot in primaries):
        return DeploymentStatus.READY
    if any(slot.ready for slot in slots):
        return DeploymentStatus.DEGRADED
    if any(slot.recovering for slot in slots):
        return DeploymentStatus.RECOVERING
    wanted = [slot for slot in slots if slot.wanted]
    if wanted and all(slot.given_up for slot in wanted):
        return DeploymentStatus.FAILED
    return DeploymentStatus.RESTARTING if was_up else DeploymentStatus.STARTING


def needs_fallback(slots: Sequence[SlotState]) -> bool:
    """Whether no primary answers and none is about to."""
    primaries = [slot for slot in slots if not slot.fallback]
    return bool(primaries) and not any(slot.ready or slot.comes for slot in primaries)


def may_stand_down(slots: Sequence[SlotState]) -> bool:
    """Whether a fallback that is started only when needed has done its work."""
    primaries = [slot for slot in slots if not slot.fallback]
    return bool(primaries) and all(slot.ready for slot in primaries)
