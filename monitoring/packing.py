"""Samples as they travel: what the numbers are is said once, then only the numbers. No Django."""

from collections.abc import Sequence

import msgspec

from monitoring.samples import Sample

Field = tuple[str, str, str, str, str, str, str]
"""metric, unit, source, kind, scope, reason, label"""
Numbers = tuple[float | None, ...]


class Layout(msgspec.Struct, frozen=True, array_like=True):
    """What the numbers of one subject mean, in their order. `number` names it on its connection."""

    number: int
    subject: str
    fields: tuple[Field, ...]


MOST_LAYOUTS = 4096
"""More are forgotten and get new numbers: launches come and go as long as an agent lives."""


class Packer:
    """One agent's layouts. A layout is made anew when a kind, a source or a reason changes."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[str, tuple[Field, ...]], Layout] = {}
        self._number = 0

    def pack(self, samples: Sequence[Sample]) -> list[tuple[Layout, Numbers]]:
        """One layout and its numbers for each subject, in the order in which they came."""
        by_subject: dict[str, list[Sample]] = {}
        for sample in samples:
            by_subject.setdefault(sample.subject, []).append(sample)
        return [self._pack(subject, group) for subject, group in by_subject.items()]

    def _pack(self, subject: str, samples: Sequence[Sample]) -> tuple[Layout, Numbers]:
        fields = tuple(
            (s.metric, s.unit, s.source, s.kind, s.scope, s.reason, s.label) for s in samples
        )
        key = subject, fields
        layout = self._layouts.get(key)
        if layout is None:
            if len(self._layouts) >= MOST_LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[key] = Layout(self._number, subject, fields)
            self._number += 1
        return layout, tuple(s.value for s in samples)
