"""A form of one catalogue of declared settings, with the reason for the change."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from dashboard.configuration.declared import Catalogue, Group, Setting, Values
from dashboard.forms.settings import SettingField, setting_fields
from dashboard.sentences import Sentence

Choices = Sequence[tuple[str, str]]


class SettingsForm(forms.Form):
    """`offered`: what a text setting may be on this fleet; what is in use stays among it.
    `fixed`: settings that the environment decides, and the variable."""

    why = forms.CharField(
        label=_("Reason for the change"),
        max_length=300,
        required=False,
        help_text=_("Kept with the revision; whoever wonders later reads it."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(
        self,
        catalogue: Catalogue,
        values: Values,
        data: Mapping[str, Any] | None = None,
        *,
        offered: Mapping[str, Choices] | None = None,
        fixed: Mapping[str, str] | None = None,
        may_change: bool = True,
    ) -> None:
        self.catalogue = catalogue
        super().__init__(data, initial=dict(catalogue.complete(values)))
        chosen = [_with_choices(one, offered or {}, values) for one in catalogue]
        self.fields = {**setting_fields(chosen), "why": self.fields["why"]}
        for name, field in self.fields.items():
            field.disabled = not may_change or name in (fixed or {})
        for name, variable in (fixed or {}).items():
            self.fields[name].help_text = str(Sentence(SET_BY, variable=variable))

    @property
    def groups(self) -> list[tuple[Group, list[forms.BoundField]]]:
        return [
            (group, [self[one.name] for one in self.catalogue if one.group == group.name])
            for group in self.catalogue.groups.values()
        ]

    @property
    def entered(self) -> dict[str, Any]:
        """What may be changed here, checked."""
        return {
            name: self.cleaned_data[name]
            for name, field in self.fields.items()
            if isinstance(field, SettingField) and not field.disabled
        }

    def refuse(self, errors: Mapping[str, Sentence]) -> None:
        for name, sentence in errors.items():
            self.add_error(name if name in self.fields else None, str(sentence))


def _with_choices(setting: Setting, offered: Mapping[str, Choices], values: Values) -> Setting:
    """Nothing is typed that can be chosen."""
    if setting.name not in offered:
        return setting
    choices = list(offered[setting.name])
    used = values.get(setting.name)
    if used and used not in [value for value, _label in choices]:
        choices.append((str(used), str(used)))
    return replace(setting, kind="choice", choices=choices, pattern="")


SET_BY = gettext_noop("Set by %(variable)s in the environment, which wins.")
