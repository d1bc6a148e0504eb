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
    wanted = _plain(pattern)
    return _is_called(wanted, part) or any(
        text and fnmatchcase(_plain(text), wanted) for text in (part.name, part.model)
    )


def _is_called(wanted: str, part: Named) -> bool:
    """Exactly: names of devices may hold what else would stand for anything."""
    return bool(wanted) and wanted in (_plain(part.name), _plain(part.model))


def _plain(text: str) -> str:
    return text.strip().lower()


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
    """Where a set has several versions of the same, each of them will do."""
    allowed: dict[tuple[str, str], list[str]] = {}
    named: dict[tuple[str, str], str] = {}
    for entry in versions:
        key = (str(entry["component"]), _plain(str(entry["fits"])))
        allowed.setdefault(key, []).append(str(entry["version"]))
        named.setdefault(key, str(entry["fits"]))
    found = []
    for (component, pattern), wanted in allowed.items():
        kept = _meant(component, pattern, parts)
        others = {part.active for part in kept} - set(wanted)
        if not kept:
            others = {""}
        words = " / ".join(wanted)
        name = named[component, pattern]
        found += [Difference(component, name, words, other) for other in sorted(others)]
    return found


def _meant(component: str, pattern: str, parts: Sequence[Named]) -> list[Named]:
    """Those that a set of this box would call so, else those that the pattern stands for."""
    kind = [part for part in parts if part.component == component]
    called = [part for part in kind if _plain(_name(part)) == pattern]
    return called or [part for part in kind if matches(pattern, part)]


def _name(part: Named) -> str:
    """Its model, which boxes have in common, where that is told."""
    return part.model or part.name


def versions_of(parts: Iterable[Named]) -> list[dict[str, str]]:
    """A box's versions as a tested set has them, each once."""
    entries: dict[tuple[str, str, str], dict[str, str]] = {}
    for part in parts:
        if part.active:
            name = _name(part)
            key = (part.component, name, part.active)
            entries[key] = dict(zip(("component", "fits", "version"), key, strict=True))
    return list(entries.values())
