"""What a document would change: found first, made afterwards."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_noop as _

from dashboard.configuration.declared import Catalogue, SettingsRefused, Values
from dashboard.configuration.reference import label_of
from dashboard.declaring.problems import Problem
from dashboard.declaring.reading import Document, Path
from dashboard.errors import StatusConflict
from dashboard.sentences import Sentence

THERE, GONE = "✓", "–"


@dataclass(frozen=True)
class Difference:
    """One thing that is not as the document has it. `now` and `wanted` in the reader's words."""

    kind: str
    """`panel`, `node`, `template`, `deployment` or `team`."""
    name: str
    setting: str
    """Empty where the whole thing is meant."""
    now: str
    wanted: str

    @property
    def label(self) -> str:
        return label_of(self.kind, self.setting)


@dataclass(frozen=True)
class Change:
    """One thing, with all that is different of it, and how to make it so."""

    path: Path
    differences: list[Difference]
    make: Callable[..., object]
    """Called with the actor, and `why=`."""
    way: str = ""
    """Of a deployment that runs: `live`, `beside` or `in-place`."""


@dataclass(frozen=True)
class Looking:
    """One look at a document; what is wrong is collected."""

    document: Document
    prune: bool = False
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, path: Path, words: str, **parts: str) -> None:
        self._add(path, Sentence(words, **parts))

    def _add(self, path: Path, why: Sentence) -> None:
        self.problems.append(Problem(self.document.line(path), ".".join(path), why))

    def things(self, part: str, known: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
        """Each named thing of a part with its values, where these have a sound shape."""
        for name, told in (self.document.part(part) or {}).items():
            if self.is_mapping((part, name), told):
                told = told or {}
                if known and not self.only((part, name), told, known):
                    continue
                yield name, told

    def is_mapping(self, path: Path, value: Any) -> bool:
        if value is None or isinstance(value, dict):
            return True
        self.refuse(path, _("names with values are expected here."))
        return False

    def only(self, path: Path, told: Mapping[str, Any], known: tuple[str, ...]) -> bool:
        odd = [name for name in told if name not in known]
        for name in odd:
            words = _("there is no such entry; known are %(known)s.")
            self.refuse((*path, name), words, known=", ".join(known))
        return not odd

    @contextmanager
    def at(self, path: Path, place: Callable[[str], Path] = lambda name: (name,)) -> Iterator[None]:
        """What is refused inside is a problem of this path; `place` says where a setting lies."""
        try:
            yield
        except SettingsRefused as error:
            for name, sentence in error.errors.items():
                self._add((*path, *place(name)), sentence)
        except StatusConflict as error:
            self._add(path, error.sentence)


def differing(
    catalogue: Catalogue, kind: str, name: str, before: Values, after: Values
) -> list[Difference]:
    return [
        Difference(kind, name, setting.name, setting.shown(old), setting.shown(new))
        for setting, old, new in catalogue.changes(before, after)
    ]
