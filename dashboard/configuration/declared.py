"""What one setting is: its type, bounds, default and words. Pure."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from django.utils.functional import Promise
from django.utils.translation import gettext_noop as _

from dashboard.errors import TandemError
from dashboard.sentences import Sentence
from dashboard.texts import can_be_kept

Value = str | int | float | bool | None
Values = Mapping[str, Value]
Words = str | Promise

Kind = Literal["whole", "number", "choice", "flag", "text"]


class SettingError(TandemError):
    """A value that a setting cannot have; `name` is the setting's."""

    def __init__(self, name: str, sentence: Sentence) -> None:
        super().__init__(sentence)
        self.name = name


class SettingsRefused(TandemError):
    """Values that cannot be taken; `errors` say why, setting by setting."""

    def __init__(self, errors: "Sequence[SettingError]") -> None:
        super().__init__(errors[0].sentence)
        self.errors = {error.name: error.sentence for error in errors}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting. `default` is what holds where nothing was entered."""

    name: str
    kind: Kind
    label: Words
    group: str
    """Name of the `Group` it is shown in."""
    default: Value
    help: Words = ""
    unit: Words = ""
    low: float | None = None
    high: float | None = None
    choices: Sequence[tuple[str, Words]] | Sequence[tuple[int, Words]] = ()
    optional: bool = False
    """Whether None is a value: `absent` says what it means."""
    absent: Words = ""
    pattern: str = ""
    """What a text must match as a whole."""
    longest: int = 200
    """Characters of a text."""
    example: str = ""
    applies: Literal["restart", "live"] = "restart"
    """Whether engines take a new value while they run."""
    drivers: tuple[str, ...] = ("embedded",)
    """Engines that know it; empty where it is not an engine's."""
    secret: bool = False
    """Its value is the name of a stored secret, never the secret."""

    def check(self, value: object) -> Value:
        """The value as it is kept. Raises SettingError."""
        if value is None or value == "":
            return self._nothing()
        match self.kind:
            case "flag":
                return self._flag(value)
            case "whole" | "number":
                return self._bounded(self._number(value))
            case "choice":
                return self._choice(value)
        return self._text(value)

    def _nothing(self) -> Value:
        if self.default in ("", None) and (self.optional or self.kind == "text"):
            return self.default
        if self.optional:
            return None
        if self.kind == "text" and not self.pattern:
            return ""
        raise self._wrong(_("A value is needed here."))

    def _flag(self, value: object) -> bool:
        known = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.strip().lower() in known:
            return known[value.strip().lower()]
        raise self._wrong(_("This is either true or false, not %(value)s."), value=_shown(value))

    def _number(self, value: object) -> int | float:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self._not_a_number(value)
        try:
            number = float(value)
            exact = int(value) if self.kind == "whole" else None
        except (ValueError, OverflowError):
            raise self._not_a_number(value) from None
        if not math.isfinite(number) or (exact is not None and exact != number):
            raise self._not_a_number(value)
        return number if exact is None else exact

    def _not_a_number(self, value: object) -> SettingError:
        words = (
            _("This must be a whole number, not %(value)s.")
            if self.kind == "whole"
            else _("This must be a number, not %(value)s.")
        )
        return self._wrong(words, value=_shown(value))

    def _bounded(self, number: int | float) -> int | float:
        if self.low is not None and not number >= self.low:
            raise self._wrong(_("This must be at least %(least)s."), least=_plain(self.low))
        if self.high is not None and not number <= self.high:
            raise self._wrong(_("This must be at most %(most)s."), most=_plain(self.high))
        return number

    def _choice(self, value: object) -> Value:
        for known, _label in self.choices:
            if value == known or str(value) == str(known):
                return known
        offered = ", ".join(str(known) for known, _label in self.choices)
        raise self._wrong(
            _("This must be one of %(choices)s, not %(value)s."),
            choices=offered,
            value=_shown(value),
        )

    def _text(self, value: object) -> str:
        if not isinstance(value, str):
            raise self._wrong(_("This must be text, not %(value)s."), value=_shown(value))
        text = value.strip()
        if len(text) > self.longest or not can_be_kept(text):
            raise self._wrong(_("This may have at most %(most)s characters."), most=self.longest)
        if self.pattern and not re.fullmatch(self.pattern, text):
            raise self._wrong(
                _("This must look like %(example)s, not %(value)s."),
                example=self.example,
                value=_shown(text),
            )
        return text

    def _wrong(self, message: str, **params: str | int | float) -> SettingError:
        return SettingError(self.name, Sentence(message, **params))

    def shown(self, value: Value) -> str:
        """As a person reads it, in the reader's language."""
        if value is None or value == "":
            return str(self.absent) or "–"
        for known, label in self.choices:
            if known == value:
                return str(label)
        unit = f" {self.unit}" if self.unit else ""
        return f"{_plain(value) if isinstance(value, float) else value}{unit}"


@dataclass(frozen=True, kw_only=True)
class Group:
    """Settings that are shown together."""

    name: str
    label: Words
    note: Words = ""


class Catalogue:
    """The settings of one kind of thing, in the order of forms and documents."""

    def __init__(
        self,
        groups: Iterable[Group],
        settings: Iterable[Setting],
        drivers: Callable[[str], tuple[str, ...]] | None = None,
    ) -> None:
        """`drivers`: which engines know a setting, where that does not stand in its declaration."""
        self._drivers = drivers
        self.groups = {group.name: group for group in groups}
        self._settings: dict[str, Setting] = {}
        for setting in settings:
            self.add(setting)

    def add(self, setting: Setting) -> None:
        if setting.name in self._settings or setting.group not in self.groups:
            raise ValueError(f"{setting.name} is declared twice, or its group is not.")
        if self._drivers is not None:
            setting = replace(setting, drivers=self._drivers(setting.name))
        self._settings[setting.name] = setting

    def remove(self, name: str) -> None:
        del self._settings[name]

    def __iter__(self) -> Iterator[Setting]:
        return iter(self._settings.values())

    def __getitem__(self, name: str) -> Setting:
        return self._settings[name]

    def __contains__(self, name: str) -> bool:
        return name in self._settings

    def of(self, driver: str) -> list[Setting]:
        """Those that an engine of this kind knows."""
        return [one for one in self._settings.values() if driver in one.drivers]

    def known_to(self, driver: str) -> "Catalogue":
        """The same with those alone that an engine of this kind knows."""
        known = self.of(driver)
        used = {one.group for one in known}
        return Catalogue([one for one in self.groups.values() if one.name in used], known)

    @property
    def defaults(self) -> dict[str, Value]:
        return {one.name: one.default for one in self._settings.values()}

    def complete(self, values: Values) -> dict[str, Value]:
        """With the defaults of what is not there; what is not declared any more is left out."""
        return {one.name: values.get(one.name, one.default) for one in self._settings.values()}

    def check(self, values: Mapping[str, object]) -> tuple[dict[str, Value], list[SettingError]]:
        """What was entered, checked one by one; unknown names are errors."""
        checked: dict[str, Value] = {}
        errors: list[SettingError] = []
        for name, value in values.items():
            try:
                if name not in self._settings:
                    raise SettingError(name, _unknown(name, self._settings))
                checked[name] = self._settings[name].check(value)
            except SettingError as error:
                errors.append(error)
        return checked, errors

    def changes(self, old: Values, new: Values) -> list[tuple[Setting, Value, Value]]:
        """What differs between two sets of values, defaults filled in."""
        before, after = self.complete(old), self.complete(new)
        return [
            (one, before[one.name], after[one.name])
            for one in self._settings.values()
            if before[one.name] != after[one.name]
        ]


def _unknown(name: str, known: Iterable[str]) -> Sentence:
    return Sentence(
        _("There is no setting %(name)s; there are %(known)s."), name=name, known=", ".join(known)
    )


def _shown(value: object) -> str:
    try:
        text = ascii(value) if isinstance(value, str) and not can_be_kept(value) else repr(value)
    except ValueError:  # A whole number of thousands of digits.
        text = type(value).__name__
    return text if len(text) <= 60 else text[:59] + "…"


def _plain(number: object) -> str:
    return f"{number:g}" if isinstance(number, float) else str(number)
