"""Silences and maintenance windows."""

from datetime import timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.forms.hidden import leave_out
from dashboard.forms.logs import MomentField
from dashboard.models import Deployment, Node
from monitoring.models import Maintenance, Rule, Silence
from monitoring.scopes import NOTHING, Hidden

LONGEST = timedelta(days=90)
HOURS = (
    (1, gettext_lazy("1 hour")),
    (4, gettext_lazy("4 hours")),
    (12, gettext_lazy("12 hours")),
    (24, gettext_lazy("1 day")),
    (72, gettext_lazy("3 days")),
    (168, gettext_lazy("1 week")),
    (720, gettext_lazy("30 days")),
)


class HushForm(forms.Form):
    """What both cover, and why."""

    node: Any = forms.ModelChoiceField(
        Node.objects.all(),
        label=gettext_lazy("Node"),
        required=False,
        empty_label=gettext_lazy("Any"),
    )
    deployment: Any = forms.ModelChoiceField(
        Deployment.objects.all(),
        label=gettext_lazy("Deployment"),
        required=False,
        empty_label=gettext_lazy("Any"),
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=200,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"required": gettext_lazy("Say why; others will read it.")},
    )

    def __init__(self, *args: Any, hidden: Hidden = NOTHING, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        leave_out(self, hidden)


class SilenceForm(HushForm):
    field_order = ["rule", "node", "deployment", "hours", "reason"]
    rule: Any = forms.ModelChoiceField(
        Rule.objects.all(),
        label=gettext_lazy("Rule"),
        required=False,
        empty_label=gettext_lazy("Any"),
    )
    hours = forms.TypedChoiceField(label=gettext_lazy("For"), choices=HOURS, coerce=int, initial=4)

    def save(self, by: str) -> Silence:
        now, cleaned = timezone.now(), self.cleaned_data
        return Silence.objects.create(
            rule=cleaned["rule"],
            node=cleaned["node"],
            deployment=cleaned["deployment"],
            starts=now,
            until=now + timedelta(hours=cleaned["hours"]),
            reason=cleaned["reason"],
            by=by,
        )


class MaintenanceForm(HushForm):
    field_order = ["node", "deployment", "starts", "until", "reason"]
    starts = MomentField(label=gettext_lazy("From (UTC)"))
    until = MomentField(label=gettext_lazy("Until (UTC)"))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        starts, until = cleaned.get("starts"), cleaned.get("until")
        if not cleaned.get("node") and not cleaned.get("deployment"):
            self.add_error("node", _("Choose the node or the deployment that is worked on."))
        if starts and until:
            if until <= max(starts, timezone.now()):
                self.add_error("until", _("It must end after it begins, and not in the past."))
            elif until - starts > LONGEST:
                self.add_error("until", _("It may last 90 days at most."))
        return cleaned

    def save(self, by: str) -> Maintenance:
        cleaned = self.cleaned_data
        return Maintenance.objects.create(
            node=cleaned["node"],
            deployment=cleaned["deployment"],
            starts=cleaned["starts"],
            until=cleaned["until"],
            reason=cleaned["reason"],
            by=by,
        )
