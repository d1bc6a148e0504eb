"""Which process has to go before memory runs out. Pure."""

from collections.abc import Sequence

import msgspec

from engine.errors import Said, said
from engine.errors import gettext_noop as _

RUNAWAY_FACTOR = 1.5
RUNAWAY_BYTES = 1 << 30
"""More than this above 1.5 times its plan is a fault of its own, however much is left."""
GIB = 1 << 30

RUNAWAY = _("It took %(used)s GiB of memory, planned were %(planned)s; ended as a runaway.")
SHORT = _(
    "Only %(left)s GiB of this node's memory were left, %(floor)s are to stay free; it took "
    "%(used)s GiB and was ended."
)


class Weighed(msgspec.Struct, frozen=True):
    key: str
    used: int
    planned: int | None

    @property
    def excess(self) -> int:
        return self.used - (self.planned or 0)

    @property
    def runs_away(self) -> bool:
        if self.planned is None:
            return False
        return self.used > self.planned * RUNAWAY_FACTOR + RUNAWAY_BYTES


def is_short(available: int | None, floor: int) -> bool:
    """Half the floor: what is planned keeps away from the floor itself."""
    return available is not None and available < floor / 2


def choose(
    processes: Sequence[Weighed], available: int | None, floor: int
) -> tuple[str, Said] | None:
    """The key of the process to end now, and why: a runaway, else, with memory short, the one most
    above its plan (all of what an unplanned one takes counts)."""
    worst = max(processes, key=lambda process: process.excess, default=None)
    if worst is None:
        return None
    for process in processes:
        if process.runs_away:
            planned = _gib(process.planned or 0)
            return process.key, said(RUNAWAY, used=_gib(process.used), planned=planned)
    if available is None or not is_short(available, floor):
        return None
    reason = said(SHORT, left=_gib(available), floor=_gib(floor), used=_gib(worst.used))
    return worst.key, reason


def _gib(size: int) -> float:
    return round(size / GIB, 2)
