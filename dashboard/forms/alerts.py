"""A rule, in the units that people think in: percent and gibibytes instead of shares and bytes."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.forms.hidden import leave_out
from monitoring.alerts.kinds import KINDS, Kind
from monitoring.metrics import METRICS
from monitoring.models import PriceList, Rule
from monitoring.scopes import NOTHING, Hidden

if TYPE_CHECKING:
    _RuleForm = forms.ModelForm[Rule]
else:
    _RuleForm = forms.ModelForm

SHOWN = {
    "ratio": (100.0, "%"),
    "bytes": (1 / 2**30, "GiB"),
    "times": (1.0, "×"),
    "seconds": (1.0, gettext_lazy("seconds")),
    "celsius": (1.0, "°C"),
    "watts": (1.0, "W"),
}
"""Unit of a reading -> by what it is multiplied to be shown, and as what."""

SIDES = ((True, gettext_lazy("above")), (False, gettext_lazy("below")))
NARROWING = {"node": ("node",), "deployment": ("deployment",), "both": ("node", "deployment")}
"""What a rule of such a kind may be confined to."""


class RuleForm(_RuleForm):
    class Meta:
        model = Rule
        fields = [
            "name",
            "severity",
            "above",
            "threshold",
            "clear",
            "for_seconds",
            "clear_seconds",
            "node",
            "deployment",
            "scope",
            "label",
            "price",
            "enabled",
        ]
        widgets = {"name": forms.TextInput(attrs={"autocomplete": "off"})}

    def __init__(
        self, *args: Any, kind: Kind, metric: str, hidden: Hidden = NOTHING, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.kind, self.metric = kind, metric
        unit = kind.unit or (METRICS[metric].unit if metric in METRICS else "")
        self.factor, self.unit = SHOWN.get(unit, (1.0, unit))
        self._drop_what_it_does_not_use()
        self.fields["threshold"].widget.attrs["step"] = "any"
        self.fields["clear"].widget.attrs["step"] = "any"
        for name in ("node", "deployment"):
            if isinstance(field := self.fields.get(name), forms.ModelChoiceField):
                field.empty_label = _("Any")
        leave_out(self, hidden)
        if kind.name == "budget":
            self.unit = PriceList.current().currency
        if self.unit:
            self.fields["threshold"].help_text = _("In %(unit)s.") % {"unit": self.unit}
        if not self.is_bound and self.instance.pk:
            for name in ("threshold", "clear"):
                self.initial[name] = f"{getattr(self.instance, name) * self.factor:.6g}"
            self.initial["name"] = str(self.instance)

    def _drop_what_it_does_not_use(self) -> None:
        used = {"name", "severity", "threshold", "clear", "for_seconds", "clear_seconds", "enabled"}
        used |= set(NARROWING.get(self.kind.about, ())) | set(self.kind.uses)
        if self.kind.above is None:
            used.add("above")
            choices = [(str(side), label) for side, label in SIDES]
            self.fields["above"] = forms.TypedChoiceField(
                label=gettext_lazy("Fires when it is"),
                choices=choices,
                coerce=lambda value: value == "True",
                initial=str(self.instance.above),
            )
        for name in set(self.fields) - used:
            del self.fields[name]
        if "label" in self.fields:
            self.fields["label"].help_text = _("Several with commas between them; empty: any.")
        if "price" in self.fields:
            self.fields["price"].help_text = _(
                "Of a kilowatt-hour, where no tariff is entered under Energy."
            )

    def clean_name(self) -> str:
        """A built-in name that was left as it is shown stays one that is translated."""
        name: str = self.cleaned_data["name"].strip()
        before = self.instance.name if self.instance.pk else ""
        return before if before and name == _(before) else name

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for name in ("threshold", "clear"):
            if cleaned.get(name) is not None:
                cleaned[name] = cleaned[name] / self.factor
        above = self._above(cleaned)
        threshold, clear = cleaned.get("threshold"), cleaned.get("clear")
        if threshold is not None and clear is not None and clear != threshold:
            if above and clear > threshold:
                self.add_error("clear", _("This must not lie above the threshold."))
            elif not above and clear < threshold:
                self.add_error("clear", _("This must not lie below the threshold."))
        if cleaned.get("node") and cleaned.get("deployment"):
            self.add_error("deployment", _("Choose a node or a deployment, not both."))
        return cleaned

    def _above(self, cleaned: dict[str, Any]) -> bool:
        return self.kind.above if self.kind.above is not None else bool(cleaned.get("above"))

    def save(self, commit: bool = True) -> Rule:
        self.instance.kind = self.kind.name
        self.instance.metric = self.metric
        self.instance.above = self._above(self.cleaned_data)
        return super().save(commit)


class ChoiceForm(forms.Form):
    """What a new rule watches."""

    kind = forms.ChoiceField(label=gettext_lazy("Watches"), required=False)
    metric = forms.ChoiceField(label=gettext_lazy("Metric"), required=False)

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]  # a query's dictionary
        kinds, metrics = self.fields["kind"], self.fields["metric"]
        assert isinstance(kinds, forms.ChoiceField)
        assert isinstance(metrics, forms.ChoiceField)
        kinds.choices = [(kind.name, kind.title) for kind in KINDS.values()]
        names = [
            (metric.name, f"{metric.name} ({metric.unit})")
            for metric in METRICS.values()
            if metric.shape != "bucket"
        ]
        metrics.choices = [("", "—"), *sorted(names)]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        kind = KINDS.get(cleaned.get("kind", ""))
        if kind is not None:
            uses = "metric" in kind.uses
            if uses and not cleaned.get("metric") and kind.name != "absent":
                self.add_error("metric", _("Choose the metric that it watches."))
            if not uses:
                cleaned["metric"] = ""
        return cleaned
