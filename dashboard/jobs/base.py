"""What a job is made of."""

from typing import ClassVar, Protocol

import msgspec

from dashboard.choices import JobKind
from dashboard.errors import TandemError
from dashboard.models import Job, Slot
from dashboard.sentences import Sentence


class Done(msgspec.Struct, frozen=True):
    detail: Sentence = Sentence()
    """What came of it."""


class Again(msgspec.Struct, frozen=True):
    """Not yet: look again in `seconds`. No worker waits meanwhile."""

    seconds: float
    detail: Sentence = Sentence()


Outcome = Done | Again


class StepFailed(TandemError):
    """This step cannot be done; the sentence becomes the deployment's reason."""


class Step(Protocol):
    """One step. Stateless: what it leaves for later steps goes into `job.state`."""

    name: str
    title: str
    """English template, translated when it is shown."""
    seconds: float
    """Deadline, from the step's start."""

    def run(self, job: Job) -> Outcome:
        """Do it, or find it done: it may be run again after a worker died half-way.

        Raises StepFailed. Must return within a few seconds.
        """

    def overdue(self, job: Job) -> Sentence:
        """What was waited for in vain."""


class Plan(Protocol):
    """One kind of job."""

    kind: ClassVar[JobKind]
    steps: ClassVar[tuple[Step, ...]]


def slot_worked_on(job: Job) -> Slot:
    """Raises StepFailed for a job of the whole deployment, which has none."""
    if job.slot is None:
        raise StepFailed("This job works on no slot.")
    return job.slot
