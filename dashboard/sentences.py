"""Sentences for people: kept as an English template with its parts, translated when shown."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.db import models
from django.utils.translation import gettext

from dashboard.texts import storable
from engine.errors import EngineError, Said

_MARK = '{"message":'


class Sentence:
    """`message` is an English template, marked with gettext_noop; `str()` is the reader's text."""

    __slots__ = ("message", "params")

    def __init__(
        self, message: str = "", /, **params: "str | int | float | Sentence | None"
    ) -> None:
        self.message = message
        self.params = params

    @classmethod
    def of(cls, text: "Sentence | Said | str") -> "Sentence":
        """An engine's words keep their template and parts; free text has no parts."""
        if isinstance(text, Sentence):
            return text
        if isinstance(text, str):
            return cls(text)
        parts = {
            name: cls.of(part) if isinstance(part, Said) else part
            for name, part in text.parts.items()
        }
        return cls(text.template, **parts)

    @classmethod
    def unpack(cls, message: str, params: Mapping[str, Any]) -> "Sentence":
        parts = {}
        for name, value in params.items():
            if isinstance(value, dict):
                value = Sentence.unpack(value["message"], value["params"])
            parts[name] = value
        return cls(message, **parts)

    def pack(self) -> dict[str, object]:
        """As JSON; parts may be sentences themselves."""
        params = {
            name: value.pack() if isinstance(value, Sentence) else value
            for name, value in self.params.items()
        }
        return {"message": self.message, "params": params}

    def __str__(self) -> str:
        if not self.message:
            return ""
        text = gettext(self.message)
        return text % self.params if self.params else text

    def __repr__(self) -> str:
        return f"Sentence({self.message!r}, **{self.params!r})"

    def __bool__(self) -> bool:
        return bool(self.message)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sentence | str) and self.pack() == Sentence.of(other).pack()

    def __hash__(self) -> int:
        return hash(self.message)


def sentence_of(error: EngineError) -> Sentence:
    """What an engine refuses, to be said in the reader's language."""
    return Sentence.of(error.said)


if TYPE_CHECKING:
    _TextField = models.TextField[Sentence | str, Sentence]
else:
    _TextField = models.TextField


class SentenceField(_TextField):
    """A text column that holds a Sentence; in migrations it is the plain text column it is."""

    def deconstruct(self) -> tuple[str, str, list[object], dict[str, object]]:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.TextField", list(args), dict(kwargs)

    def from_db_value(self, value: str | None, *_: object) -> Sentence | None:
        return None if value is None else _parse(value)

    def to_python(self, value: object) -> Sentence | None:
        if value is None or isinstance(value, Sentence):
            return value
        return _parse(str(value))

    def get_prep_value(self, value: object) -> str | None:
        if value is None:
            return None
        told = value if isinstance(value, Sentence) else Sentence(str(value))
        # What a BMC or a process has said may look like what is kept of a sentence with parts.
        packed = told.params or told.message.startswith(_MARK)
        return json.dumps(told.pack()) if packed else storable(told.message)

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj)) or ""


def _parse(text: str) -> Sentence:
    if not text.startswith(_MARK):
        return Sentence(text)
    packed = json.loads(text)
    return Sentence.unpack(packed["message"], packed["params"])
