"""What the forms of all sources share: a name, secrets that are only written, sections."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from django import forms
from django.forms import BoundField
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.models import NodeSource
from monitoring.sources import Source
from monitoring.vault import SealError

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise as Text

KEEP = gettext_lazy("Leave it empty to keep the one that is stored.")
NOT_PRINTABLE = gettext_lazy("Only characters that can be seen, please.")


@dataclass(frozen=True)
class Section:
    """Fields that stand together; each inner tuple is one line of the form."""

    title: "Text"
    lines: tuple[tuple[str, ...], ...]
    note: "Text" = ""
    folded: bool = False
    """Hidden until asked for, or until one of its fields holds something."""


@dataclass(frozen=True)
class Shown:
    section: Section
    lines: list[list[BoundField]]

    @property
    def open(self) -> bool:
        """Whether a folded one is to be seen at once."""
        fields = [field for line in self.lines for field in line]
        return any(
            field.errors or field.value() not in (None, "", field.field.initial)
            for field in fields
            if not field.is_hidden
        )


def printable(text: str) -> str:
    if not text.isprintable():
        raise forms.ValidationError(str(NOT_PRINTABLE))
    return text


def text_input(placeholder: str = "") -> forms.TextInput:
    return forms.TextInput(
        attrs={"placeholder": placeholder, "autocomplete": "off", "spellcheck": "false"}
    )


def secret_field(label: "Text", help_text: "Text" = "") -> forms.CharField:
    """Never sent back to a browser."""
    return forms.CharField(
        label=label,
        required=False,
        max_length=200,
        strip=False,
        help_text=help_text,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )


class SourceForm(forms.Form):
    """`row` is what is stored already, when one is edited."""

    kind: ClassVar[str]
    struct: ClassVar[type[Source]]
    sections: ClassVar[tuple[Section, ...]]
    place: ClassVar[tuple[str, ...]] = ()
    """Fields that say where the secrets are sent; somewhere else they must be entered anew."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=40,
        widget=text_input(),
        help_text=gettext_lazy("How this source is called beside its readings."),
    )

    def __init__(self, data: QueryDict | None = None, row: NodeSource | None = None) -> None:
        self.row = row if row is not None and row.pk else None
        super().__init__(data, initial=self._stored())
        if self.row is not None:
            for name in self.struct.secrets:
                field = self.fields[name]
                field.help_text = " ".join(str(part) for part in (field.help_text, KEEP) if part)

    def _stored(self) -> dict[str, Any]:
        if self.row is None:
            return {}
        settings = {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in self.row.settings.items()
        }
        return {"name": self.row.name, **self.written(settings)}

    def written(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Stored settings as the form's fields show them."""
        return dict(settings)

    def shown(self) -> Iterator[Shown]:
        for section in self.sections:
            yield Shown(section, [[self[name] for name in line] for line in section.lines])

    def clean_name(self) -> str:
        return printable(str(self.cleaned_data["name"]))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        kept = self._kept()
        for name in self.struct.secrets:
            if not cleaned.get(name) and name not in self.errors:
                cleaned[name] = kept.get(name, "")
        return cleaned

    def _kept(self) -> dict[str, str]:
        """The stored secrets, if they may still be used."""
        if self.row is None or not self.row.sealed:
            return {}
        if any(self.cleaned_data.get(name) != self.initial.get(name) for name in self.place):
            return {}
        try:
            return self.row.secrets
        except SealError:
            return {}

    def missing(self, name: str) -> None:
        """Say that a secret has to be entered."""
        if self.row is not None and self.row.sealed:
            self.add_error(
                name, _("Enter it again: the address has changed, or what is stored is unreadable.")
            )
        else:
            self.add_error(name, _("It is needed."))

    def content(self) -> dict[str, Any]:
        """The source's settings, from valid fields."""
        fields = set(self.struct.__struct_fields__)
        return {name: value for name, value in self.cleaned_data.items() if name in fields}

    def source(self) -> Source:
        return msgspec.convert({"type": self.kind, **self.content()}, self.struct)
