"""A vendor's command line tool: run in the background, not too often, and its answer ages out."""

import logging
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from monitoring.samples import gettext_noop

log = logging.getLogger(__name__)

T = TypeVar("T")

PERIOD_SECONDS = 5.0
DEADLINE_SECONDS = 10.0
OLDEST_PERIODS = 3.0

NOT_YET = gettext_noop("The accelerator's tool has not answered yet.")
NO_TOOL = gettext_noop("The accelerator's command line tool is not installed.")
SILENT = gettext_noop("The accelerator's tool did not answer in time.")
FAILED = gettext_noop("The accelerator's tool failed; the agent's log says how.")
UNREADABLE = gettext_noop("The accelerator's tool answered something that cannot be read.")


class ToolError(Exception):
    """`reason` is a sentence; the cause says more."""

    def __init__(self, reason: str, cause: str = "") -> None:
        super().__init__(cause or reason)
        self.reason = reason


def run(argv: Sequence[str], deadline: float = DEADLINE_SECONDS) -> str:
    """What it prints, in English; raises ToolError."""
    if shutil.which(argv[0]) is None:
        raise ToolError(NO_TOOL)
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=deadline,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(SILENT) from None
    except OSError as error:
        raise ToolError(FAILED, str(error)) from error
    if done.returncode:
        raise ToolError(FAILED, (done.stderr or done.stdout).strip()[:500])
    return done.stdout


class Polled(Generic[T]):
    """The newest answer of something slow, asked again in the background when it is due."""

    def __init__(
        self,
        ask: Callable[[], T],
        period: float = PERIOD_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._period = period
        self._clock = clock
        self._answer: tuple[float, T] | None = None
        self._error = ToolError(NOT_YET)
        self._due = 0.0
        self._asking: threading.Thread | None = None

    def latest(self) -> T:
        """Not older than three periods; raises ToolError with the reason why there is none."""
        self._ask_when_due()
        answer = self._answer
        if answer is None or self._clock() - answer[0] > self._period * OLDEST_PERIODS:
            raise self._error
        return answer[1]

    def wait(self, seconds: float) -> None:
        """Until what is being asked is answered."""
        self._ask_when_due()
        if self._asking is not None:
            self._asking.join(seconds)

    def _ask_when_due(self) -> None:
        if self._asking is not None and self._asking.is_alive():
            return
        if self._clock() >= self._due:
            self._due = self._clock() + self._period
            self._asking = threading.Thread(target=self._run, name="tool", daemon=True)
            self._asking.start()

    def _run(self) -> None:
        try:
            answer = self._ask()
        except ToolError as error:
            if str(error) != str(self._error):  # Once, not every five seconds.
                log.warning("%s %s", error.reason, error)
            self._error = error
            return
        self._answer = self._clock(), answer
        self._error = ToolError(SILENT)
