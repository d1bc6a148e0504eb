"""What somebody entered in a form, as a line of the audit trail."""

from collections.abc import Collection
from typing import Any

from django import forms
from django.db.models import Model
from django.http import HttpRequest

from dashboard.audit import actor_of, note

SECRET = ("secret", "password", "token", "key")
"""Fields that may hold what opens something; that they changed is told, not to what."""


def note_form(
    request: HttpRequest,
    action: str,
    target: Model | str,
    form: forms.BaseForm,
    secret: Collection[str] = SECRET,
    via: str = "form",
) -> None:
    """What was changed of it: before and after."""
    before, after = {}, {}
    for name in form.changed_data:
        field = form.fields[name]
        hidden = name in secret or isinstance(field.widget, forms.PasswordInput)
        before[name] = _told(field, form.get_initial_for_field(field, name), hidden=hidden)
        after[name] = _told(field, form.cleaned_data.get(name), hidden=hidden)
    note(actor_of(request, via), action, target, before=before, after=after)


def _told(field: forms.Field, value: Any, *, hidden: bool) -> Any:
    if value is None or value == "":
        return ""
    if hidden:
        return "***"
    if isinstance(value, bool | int | float):
        return value
    if isinstance(field, forms.ModelChoiceField) and not isinstance(value, Model):
        try:
            value = field.to_python(value)
        except forms.ValidationError:
            return ""
    return str(value)
