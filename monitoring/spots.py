"""The newest reading of one subject, as it travels to whoever looks at it now."""

from typing import NamedTuple

from monitoring.frames import CheckedLayout, Frame
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
