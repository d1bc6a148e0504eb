"""Typed look-ups in what a checkpoint declares; each failure names the file and the key."""

from collections.abc import Mapping
from typing import Any

from engine.errors import CheckpointError, Part, Said, said
from engine.errors import gettext_noop as _

LARGEST = 2**31


class Declared:
    """Values by key. None and absent are the same: the default counts."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name = name
        self.values = values

    def get(self, key: str) -> Any:
        return self.values.get(key)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, value, said(_("a text")))
        return value

    def integer(self, key: str, default: int | None = None) -> int:
        """At least 1."""
        value = self._value(key, default)
        if not _is_integer(value) or not 0 < value < LARGEST:
            raise self._wrong(key, value, said(_("a positive integer")))
        return int(value)

    def count(self, key: str, default: int | None = None) -> int:
        """At least 0."""
        value = self._value(key, default)
        if not _is_integer(value) or not 0 <= value < LARGEST:
            raise self._wrong(key, value, said(_("an integer of at least 0")))
        return int(value)

    def number(self, key: str, default: float | None = None) -> float:
        value = self._value(key, default)
        if not _is_number(value) or not 0 < value < 1e12:
            raise self._wrong(key, value, said(_("a positive number")))
        return float(value)

    def amount(self, key: str, default: float | None = None) -> float:
        """A number that may be 0."""
        value = self._value(key, default)
        if not _is_number(value) or not 0 <= value < 1e12:
            raise self._wrong(key, value, said(_("a number of at least 0")))
        return float(value)

    def flag(self, key: str, default: bool | None = None) -> bool:
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, value, said(_("true or false")))
        return value

    def numbers(self, key: str) -> tuple[float, ...]:
        value = self._value(key, None)
        if not isinstance(value, list) or not all(
            _is_number(item) and 0 < item < 1e12 for item in value
        ):
            raise self._wrong(key, value, said(_("a list of positive numbers")))
        return tuple(map(float, value))

    def refuse(self, problem: str, /, **parts: Part) -> CheckpointError:
        return CheckpointError(
            _("%(file)s: %(problem)s."), file=self.name, problem=Said(problem, parts)
        )

    def _value(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        return default if value is None else value

    def _wrong(self, key: str, value: object, wanted: Said) -> CheckpointError:
        if value is None:
            return CheckpointError(
                _("%(file)s: metadata %(key)r is missing."), file=self.name, key=key
            )
        found = said(_("an array")) if isinstance(value, list) else repr(value)[:80]
        return CheckpointError(
            _("%(file)s: metadata %(key)r should be %(wanted)s, not %(found)s."),
            file=self.name,
            key=key,
            wanted=wanted,
            found=found,
        )


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
