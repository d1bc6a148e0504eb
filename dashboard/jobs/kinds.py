"""The kinds of jobs. A new kind is one class here."""

from typing import ClassVar

from dashboard.choices import JobKind
from dashboard.jobs.base import Plan, Step
from dashboard.jobs.change import Compare, Replace, SeeOff, Take
from dashboard.jobs.end import Drain, Retire
from dashboard.jobs.launch import Load, Start, Verify
from dashboard.jobs.move import Leave, Switch, TakeOver
from dashboard.jobs.prepare import CheckFile, CheckPlan, Place


class Deploy:
    kind: ClassVar = JobKind.DEPLOY
    steps: ClassVar[tuple[Step, ...]] = (
        CheckFile(),
        CheckPlan(),
        Place(),
        Start(),
        Load(),
        Verify(),
    )


class Stop:
    kind: ClassVar = JobKind.STOP
    steps: ClassVar[tuple[Step, ...]] = (Retire(),)


class Restart:
    kind: ClassVar = JobKind.RESTART
    steps: ClassVar[tuple[Step, ...]] = (Retire(), Place(), Start(), Load(), Verify())


class StandDown:
    kind: ClassVar = JobKind.DRAIN
    steps: ClassVar[tuple[Step, ...]] = (Drain(), Retire())


class Move:
    kind: ClassVar = JobKind.MOVE
    steps: ClassVar[tuple[Step, ...]] = (TakeOver(), Switch(), Leave())


class Change:
    kind: ClassVar = JobKind.CHANGE
    steps: ClassVar[tuple[Step, ...]] = (Compare(), Replace(), Take(), SeeOff())


PLANS: dict[str, type[Plan]] = {
    plan.kind: plan for plan in (Deploy, Stop, Restart, StandDown, Move, Change)
}
