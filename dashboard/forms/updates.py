"""A firmware roll-out: which image goes on which parts, in which order."""

import secrets
from datetime import timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dashboard.firmware.fitting import fits
from dashboard.models import FirmwareImage, FirmwarePart
from monitoring.scopes import NOTHING, Hidden

MONTHLY = "monthly-"
"""How tokens of roll-outs begin that nobody has made."""


def fitting_parts(image: FirmwareImage, hidden: Hidden = NOTHING) -> list[FirmwarePart]:
    """Parts that the image may go on, one a node, by the nodes' names."""
    rows = FirmwarePart.objects.filter(component=image.component, updatable=True)
    rows = rows.exclude(node__in=hidden.nodes)
    found: dict[int, FirmwarePart] = {}
    for part in rows.select_related("node").order_by("node__name", "name"):
        if fits(image.component, image.fits, part) and not part.node.simulated:
            found.setdefault(part.node_id, part)
    return list(found.values())


class PartsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    version = ""

    def label_from_instance(self, obj: FirmwarePart) -> str:
        return f"{obj.node.name}: {obj.name}, {obj.active or '?'} → {self.version}"


class RolloutForm(forms.Form):
    token = forms.CharField(widget=forms.HiddenInput(), max_length=64)
    parts = PartsField(
        FirmwarePart.objects.none(),
        label=_("Boxes, one after another"),
        widget=forms.CheckboxSelectMultiple(),
        error_messages={"required": _("Choose at least one box.")},
    )
    first = forms.ChoiceField(label=_("Begin with"), required=False)
    reason = forms.CharField(
        label=_("Reason"),
        max_length=300,
        help_text=_("Read by who approves it, and kept."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    allow_downgrade = forms.BooleanField(
        label=_("Allow a version that is not newer"), required=False
    )
    on_reset = forms.BooleanField(
        label=_("Stage it now, activate it later"),
        required=False,
        help_text=_("It runs after a reset, which somebody asks for on the update's page."),
    )
    not_before = forms.DateTimeField(
        label=_("Not before"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text=_("In UTC; empty: as soon as it is approved."),
    )

    def __init__(self, image: FirmwareImage, data: Any = None, hidden: Hidden = NOTHING) -> None:
        super().__init__(data, initial={"token": secrets.token_urlsafe(24)})
        self.image = image
        self.offered = fitting_parts(image, hidden)
        field = self.fields["parts"]
        assert isinstance(field, PartsField)
        field.version = image.version
        field.queryset = FirmwarePart.objects.filter(pk__in=[part.pk for part in self.offered])
        first = self.fields["first"]
        assert isinstance(first, forms.ChoiceField)
        names = [(str(part.pk), part.node.name) for part in self.offered]
        first.choices = [("", _("the first by name")), *names]

    def clean_token(self) -> str:
        token = str(self.cleaned_data["token"])
        if token.startswith(MONTHLY):  # Else it would be taken for the panel's own roll-out.
            raise forms.ValidationError(_("Open the form again."))
        return token

    def clean_not_before(self) -> Any:
        begins = self.cleaned_data["not_before"]
        if begins is not None and begins < timezone.now() - timedelta(minutes=1):
            raise forms.ValidationError(_("This is in the past."))
        return begins

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        picked = {str(part.pk) for part in cleaned.get("parts", ())}
        if picked and cleaned.get("first") and cleaned["first"] not in picked:
            self.add_error("first", _("This box is not among those that are chosen."))
        return cleaned

    @property
    def chosen(self) -> list[FirmwarePart]:
        """In the order in which they are to be updated."""
        picked = {part.pk for part in self.cleaned_data["parts"]}
        found = [part for part in self.offered if part.pk in picked]
        return sorted(found, key=lambda part: str(part.pk) != self.cleaned_data["first"])


class ApprovalForm(forms.Form):
    reason = forms.CharField(
        label=_("Why it may go ahead"),
        max_length=300,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    understood = forms.BooleanField(
        label=_("I know that this cannot be undone."),
        error_messages={"required": _("Tick that you know that it cannot be undone.")},
    )

    def __init__(self, data: Any = None, *, reversible: bool) -> None:
        super().__init__(data)
        if reversible:
            del self.fields["understood"]
