"""Form fields made from declared settings."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.text import capfirst

from dashboard.configuration.declared import Setting, SettingError, Value, Values


class SettingField(forms.Field):
    """One declared setting; it alone judges what was entered."""

    def __init__(self, setting: Setting, **options: Any) -> None:
        self.setting = setting
        super().__init__(
            label=capfirst(str(setting.label)),
            help_text=str(setting.help),
            required=False,
            initial=setting.default,
            widget=_widget(setting),
            **options,
        )

    def clean(self, value: Any) -> Value:
        if self.setting.kind == "flag":
            return bool(value)
        if value in (None, "") and not self.setting.optional and self.setting.kind != "text":
            value = self.setting.default  # A field that a form of before leaves out.
        try:
            return self.setting.check(value)
        except SettingError as error:
            raise forms.ValidationError(str(error)) from error

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.clean(data) != initial)


def _widget(setting: Setting) -> forms.Widget:
    attrs: dict[str, Any] = {"placeholder": setting.example} if setting.example else {}
    match setting.kind:
        case "flag":
            return forms.CheckboxInput()
        case "choice":
            empty = [("", setting.absent)] if setting.optional else []
            return forms.Select(choices=[*empty, *setting.choices])
        case "whole" | "number":
            bounds = {"min": setting.low, "max": setting.high}
            attrs |= {name: bound for name, bound in bounds.items() if bound is not None}
            attrs["step"] = 1 if setting.kind == "whole" else "any"
            if setting.optional and setting.absent:
                attrs["placeholder"] = setting.absent
            return forms.NumberInput(attrs=attrs)
    return forms.TextInput(attrs=attrs | {"autocomplete": "off", "spellcheck": "false"})


def setting_fields(settings: Iterable[Setting]) -> dict[str, forms.Field]:
    return {setting.name: SettingField(setting) for setting in settings}


def values_of(form: forms.BaseForm) -> Values:
    """What was entered of the declared settings, checked."""
    return {
        name: form.cleaned_data[name]
        for name, field in form.fields.items()
        if isinstance(field, SettingField) and name in form.cleaned_data
    }
