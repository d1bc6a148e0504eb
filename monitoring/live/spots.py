"""The newest reading of one subject, as it travels to whoever looks at it now."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from monitoring.live.frames import CheckedLayout, Frame
from monitoring.packing import Numbers
from monitoring.scopes import topic_of


class Spot(NamedTuple):
    node: int
    subject: str
    layout: CheckedLayout
    at: float
    """Unix seconds."""
    numbers: Numbers

    @property
    def topic(self) -> str:
        return topic_of(self.node, self.subject)


def spots(frame: Frame) -> list[Spot]:
    at = frame.at.timestamp()
    return [Spot(frame.node, r.subject, r.layout, at, r.numbers) for r in frame.readings]


TOGETHER_SECONDS = 3.0
"""What one node told longer ago than that before the other is not told as of now."""


def joined(parts: Iterable[Spot]) -> Spot:
    """What several nodes tell of one subject: a rank's process is read on its own box, its steps by
    the head of its replica. At least one part."""
    ordered = sorted(parts, key=lambda spot: spot.node)
    newest = max(ordered, key=lambda spot: spot.at)
    ordered = [spot for spot in ordered if newest.at - spot.at <= TOGETHER_SECONDS]
    if len(ordered) == 1:
        return newest
    layout = _joined(tuple(spot.layout for spot in ordered))
    numbers = tuple(number for spot in ordered for number in spot.numbers)
    return newest._replace(layout=layout, numbers=numbers)


@lru_cache(maxsize=1024)
def _joined(layouts: tuple[CheckedLayout, ...]) -> CheckedLayout:
    fields = tuple(described for layout in layouts for described in layout.fields)
    return CheckedLayout(layouts[0].subject, fields, tuple(range(len(fields))))
