"""Which image and which tested set fit which part. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol


class Named(Protocol):
    """A part of a box, as far as fitting goes."""

    component: str
    name: str
    model: str
    active: str


def matches(pattern: str, part: Named) -> bool:
    """Against its name or its model, whatever the case; `*` stands for anything."""
    wanted = pattern.strip().lower()
    return any(
        text and fnmatchcase(text.lower(), wanted) for text in (part.name, part.model)
    ) or wanted in (part.name.lower(), part.model.lower())


def fits(component: str, patterns: Sequence[str], part: Named) -> bool:
    """Whether an image of this kind, for these, may go on the part. No pattern fits nothing."""
    return part.component == component and any(matches(each, part) for each in patterns)


@dataclass(frozen=True)
class Difference:
    """An entry of a tested set that a box does not keep to."""

    component: str
    fits: str
    wanted: str
    found: str
    """Empty: the box has no such part, or its version is not known."""


def differences(versions: Iterable[Mapping[str, Any]], parts: Sequence[Named]) -> list[Difference]:
    found = []
    for entry in versions:
        component, pattern, wanted = (str(entry[key]) for key in ("component", "fits", "version"))
        kept = [part for part in parts if fits(component, [pattern], part)]
        if not kept:
            found.append(Difference(component, pattern, wanted, ""))
        others = sorted({part.active for part in kept if part.active != wanted})
        found += [Difference(component, pattern, wanted, other) for other in others]
    return found


def versions_of(parts: Iterable[Named]) -> list[dict[str, str]]:
    """A box's versions as a tested set has them, each once."""
    entries: dict[tuple[str, str, str], dict[str, str]] = {}
    for part in parts:
        if part.active:
            name = part.model or part.name
            key = (part.component, name, part.active)
            entries[key] = dict(zip(("component", "fits", "version"), key, strict=True))
    return list(entries.values())
