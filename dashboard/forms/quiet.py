"""A rule that holds nodes and engines back."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.forms.hidden import leave_out
from dashboard.forms.week import MIDNIGHT, ClockInput, DaysField, ZoneField
from monitoring.models import QuietRule
from monitoring.scopes import NOTHING, Hidden

if TYPE_CHECKING:
    _QuietRuleForm = forms.ModelForm[QuietRule]
else:
    _QuietRuleForm = forms.ModelForm

WISHES = ("power_watts", "clock_mhz", "batch_cap")


class QuietRuleForm(_QuietRuleForm):
    days = DaysField()
    zone = ZoneField()

    class Meta:
        model = QuietRule
        fields = [
            "name",
            "always",
            "days",
            "begins",
            "ends",
            "zone",
            "node",
            "power_watts",
            "clock_mhz",
            "deployment",
            "batch_cap",
        ]
        widgets = {"begins": ClockInput(), "ends": ClockInput()}
        help_texts = {
            "always": gettext_lazy("A power cap around the clock: days and times do not count."),
            "ends": MIDNIGHT,
            "power_watts": gettext_lazy("Watts of each accelerator. Empty: not limited."),
            "clock_mhz": gettext_lazy("MHz of each accelerator. Empty: not limited."),
            "batch_cap": gettext_lazy(
                "How many answers an engine may advance in one step. Others wait their turn; "
                "nothing is refused. Works without an accelerator. Empty: not limited."
            ),
        }
        error_messages = {
            "name": {"unique": gettext_lazy("There is a rule of this name already.")},
        }

    def __init__(self, *args: Any, hidden: Hidden = NOTHING, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["days"].required = False
        for name, label in (("node", _("every node")), ("deployment", _("every deployment"))):
            choice = self.fields[name]
            assert isinstance(choice, forms.ModelChoiceField)
            choice.empty_label = label
        leave_out(self, hidden)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not cleaned.get("always"):
            for name in ("days", "begins", "ends"):
                if cleaned.get(name) in (None, []) and name not in self.errors:
                    self.add_error(name, _("Enter it, or let the rule hold always."))
        if all(cleaned.get(name) is None for name in WISHES) and not self.errors:
            self.add_error(
                "power_watts",
                _("Ask for something: a power limit, a highest clock, or answers at once."),
            )
        return cleaned
