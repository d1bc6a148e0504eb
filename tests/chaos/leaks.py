"""What an idle fleet still holds."""

from dataclasses import dataclass, field

from tests.chaos.fleet import Fleet
from tests.chaos.waiting import wait_for

BLOCKS_SECONDS = 45.0
"""Longer than a head keeps an answer whose reader has gone."""


@dataclass
class Leaks:
    """`blocks` held by nobody; `audit` says what else is wrong. A head that finds its block tables
    at odds with each other when it falls idle ends with that as its reason, so one that is healthy
    after being idle has passed."""

    blocks: int = 0
    audit: list[str] = field(default_factory=list)


def leaks_of(fleet: Fleet) -> Leaks:
    """Nobody may be asking anything any more."""
    used: dict[str, int] = {}

    def all_free() -> bool:
        used.clear()
        for launch in fleet.panel.launches():
            stats = fleet.stats(launch)
            used[f"{launch.role} {launch.launch}"] = stats.get("kv_blocks_used", 1) if stats else 1
        return bool(used) and not any(used.values())

    try:
        wait_for("free blocks", all_free, BLOCKS_SECONDS, lambda: str(used))
        wait_for("a whole fleet", lambda: not fleet.why_not_whole(), BLOCKS_SECONDS, fleet.story)
    except TimeoutError as error:
        return Leaks(sum(used.values()), [str(error)])
    return Leaks()
