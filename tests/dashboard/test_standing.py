"""A deployment's status follows from its slots, whatever these are."""

import random
from collections.abc import Iterator

import pytest

from dashboard.choices import DEPLOYMENT_TRANSITIONS, DeploymentStatus, ReplicaStatus
from dashboard.lifecycle.standing import (
    SlotState,
    may_stand_down,
    needs_fallback,
    standing,
)

READY, RECOVERING = ReplicaStatus.READY, ReplicaStatus.RECOVERING
STARTING, DRAINING = ReplicaStatus.STARTING, ReplicaStatus.DRAINING
LAUNCHES = [None, STARTING, READY, RECOVERING, DRAINING]


def primary(launch: ReplicaStatus | None = None, **fields: bool) -> SlotState:
    return SlotState(launch=launch, **fields)


def fallback(launch: ReplicaStatus | None = None, **fields: bool) -> SlotState:
    return SlotState(launch=launch, fallback=True, **fields)


@pytest.mark.parametrize(
    ("slots", "status"),
    [
        ([primary(READY)], "ready"),
        ([primary(READY), fallback(READY)], "ready"),
        ([primary(READY), fallback(given_up=True)], "ready"),
        ([primary(READY), primary(STARTING)], "degraded"),
        ([primary(RECOVERING), fallback(READY)], "degraded"),
        ([primary(given_up=True), fallback(READY)], "degraded"),
        ([primary(RECOVERING)], "recovering"),
        ([primary(RECOVERING), primary(READY)], "degraded"),
        ([primary(RECOVERING), fallback(wanted=False)], "recovering"),
        ([primary(RECOVERING), fallback(STARTING)], "recovering"),
        ([primary(STARTING)], "starting"),
        ([primary(given_up=True)], "failed"),
        ([primary(given_up=True), fallback(wanted=False)], "failed"),
        ([primary(given_up=True), fallback(STARTING)], "starting"),
        ([primary(given_up=True), primary()], "starting"),
    ],
)
def test_the_status_follows_from_the_slots(slots: list[SlotState], status: str) -> None:
    assert standing(slots, was_up=False) == status


def test_what_answered_before_restarts_and_does_not_start() -> None:
    assert standing([primary(STARTING)], was_up=True) == "restarting"


@pytest.mark.parametrize(
    ("slots", "needed"),
    [
        ([primary(READY)], False),
        ([primary(STARTING)], False),
        ([primary(RECOVERING)], False),
        ([primary(RECOVERING, lost=True)], True),
        ([primary(STARTING, lost=True)], True),
        ([primary(underway=True)], False),
        ([primary()], True),
        ([primary(given_up=True)], True),
        ([primary(), primary(READY)], False),
        ([primary(), primary(RECOVERING)], False),
        ([primary(), primary(RECOVERING, lost=True)], True),
    ],
)
def test_a_fallback_is_needed_when_no_primary_answers_or_is_about_to(
    slots: list[SlotState], needed: bool
) -> None:
    assert needs_fallback([*slots, fallback(wanted=False)]) is needed


def test_a_fallback_stands_down_once_every_primary_answers() -> None:
    assert may_stand_down([primary(READY), primary(READY), fallback(READY)])
    assert not may_stand_down([primary(READY), primary(STARTING), fallback(READY)])


def any_slots(seed: int) -> Iterator[list[SlotState]]:
    draw = random.Random(seed)
    for _ in range(500):
        slots = [
            SlotState(
                launch=draw.choice(LAUNCHES[:4]),
                given_up=draw.random() < 0.3,
                underway=draw.random() < 0.5,
                lost=draw.random() < 0.3,
            )
            for _ in range(draw.randint(1, 4))
        ]
        if draw.random() < 0.5:
            slots.append(
                SlotState(
                    fallback=True,
                    launch=draw.choice(LAUNCHES),
                    wanted=draw.random() < 0.5,
                    given_up=draw.random() < 0.3,
                )
            )
        yield slots


@pytest.mark.parametrize("seed", range(4))
def test_it_is_ready_or_degraded_exactly_when_something_answers(seed: int) -> None:
    for slots in any_slots(seed):
        status = standing(slots, was_up=True)
        answers = any(slot.ready for slot in slots)
        assert (status in (DeploymentStatus.READY, DeploymentStatus.DEGRADED)) is answers
        assert not (needs_fallback(slots) and may_stand_down(slots)), "called and sent home"


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_to_the_slots_the_change_is_allowed(seed: int) -> None:
    before: DeploymentStatus = DeploymentStatus.STARTING
    for slots in any_slots(seed):
        after = standing(slots, was_up=before != DeploymentStatus.STARTING)
        assert after == before or after in DEPLOYMENT_TRANSITIONS[before]
        before = after
