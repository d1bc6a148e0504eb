"""Which lines of the log to show; the same fields stand in the address, so a link shares them."""

from datetime import UTC, datetime

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from dashboard.choices import LogLevel
from dashboard.models import Deployment, LogLine, Node, Replica
from dashboard.texts import storable
from monitoring.scopes import NOTHING, Hidden

WORSE = {
    "warning": (LogLevel.WARNING, LogLevel.ERROR, LogLevel.CRITICAL),
    "error": (LogLevel.ERROR, LogLevel.CRITICAL),
}
MOMENT_FORMAT = "%Y-%m-%dT%H:%M"
EARLIEST, LATEST = 0, 4_102_444_800
"""Unix seconds; what lies beyond is no time of a log."""


class MomentField(forms.CharField):
    """A browser's date and time, read as UTC; or Unix seconds, as links between pages have them."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format=MOMENT_FORMAT)

    def to_python(self, value: object) -> datetime | None:  # type: ignore[override]  # a time, not text
        text = str(value or "").strip()
        if not text:
            return None
        try:
            if text.replace(".", "", 1).isdecimal():
                moment = datetime.fromtimestamp(float(text), UTC)
            else:
                moment = datetime.fromisoformat(text)
        except (ValueError, OverflowError, OSError) as error:
            raise ValidationError(_("This is no date and time.")) from error
        moment = moment.replace(tzinfo=moment.tzinfo or UTC)
        if not EARLIEST <= moment.timestamp() <= LATEST:
            raise ValidationError(_("This is no date and time."))
        return moment

    def prepare_value(self, value: object) -> object:
        """Unix seconds of a link stand in the form as a date and a time."""
        try:
            moment = self.to_python(value)
        except ValidationError:
            return value
        return moment.astimezone(UTC).strftime(MOMENT_FORMAT) if moment else ""


class LogForm(forms.Form):
    q = forms.CharField(
        label=_("Text"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"type": "search", "autocomplete": "off"}),
    )
    node = forms.ChoiceField(label=_("Node"), required=False)
    deployment = forms.ChoiceField(label=_("Deployment"), required=False)
    source = forms.ChoiceField(label=_("Source"), required=False)
    level = forms.ChoiceField(
        label=_("Level"),
        required=False,
        choices=[
            ("", _("Any")),
            ("warning", _("Warnings and worse")),
            ("error", _("Errors alone")),
        ],
    )
    begin = MomentField(label=_("From (UTC)"), required=False)
    end = MomentField(label=_("To (UTC)"), required=False)

    def __init__(self, data: object, hidden: Hidden = NOTHING) -> None:
        super().__init__(data)  # type: ignore[arg-type]  # a query's dictionary
        self.hidden = hidden
        seen = Node.objects.exclude(pk__in=hidden.nodes).order_by("name")
        nodes = seen.values_list("name", flat=True)
        shown = Deployment.objects.exclude(pk__in=hidden.deployments).order_by("name")
        deployments = shown.values_list("name", flat=True)
        for name, values in (("node", nodes), ("deployment", deployments), ("source", SOURCES)):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [("", _("Any")), *((value, value) for value in values)]

    def clean_q(self) -> str:
        return storable(self.cleaned_data["q"]).strip()

    def lines(self) -> QuerySet[LogLine]:
        """Newest first. Only of a form that is valid."""
        wanted = self.cleaned_data
        found = LogLine.objects.order_by("-pk").select_related("node", "job__deployment")
        found = _without(found, self.hidden)
        if wanted["q"]:
            found = found.filter(Q(text__icontains=wanted["q"]) | Q(request=wanted["q"]))
        if wanted["node"]:
            found = found.filter(node__name=wanted["node"])
        if wanted["deployment"]:
            launches = Replica.objects.filter(deployment__name=wanted["deployment"])
            found = found.filter(
                Q(launch__in=launches.values("launch"))
                | Q(job__deployment__name=wanted["deployment"])
            )
        if wanted["source"]:
            found = found.filter(_of_source(wanted["source"]))
        if wanted["level"]:
            found = found.filter(level__in=WORSE[wanted["level"]])
        if wanted["begin"]:
            found = found.filter(at__gte=wanted["begin"])
        if wanted["end"]:
            found = found.filter(at__lte=wanted["end"])
        return found


def _without(lines: QuerySet[LogLine], hidden: Hidden) -> QuerySet[LogLine]:
    if hidden.deployments:
        launches = Replica.objects.filter(deployment__in=hidden.deployments)
        lines = lines.exclude(launch__in=launches.values("launch"))
        lines = lines.exclude(job__deployment__in=hidden.deployments)
    return lines.exclude(node__in=hidden.nodes) if hidden.nodes else lines


SOURCES = ("head", "rank", "agent", "kernel", "job")


def _of_source(source: str) -> Q:
    return Q(source__startswith="rank") if source == "rank" else Q(source=source)
