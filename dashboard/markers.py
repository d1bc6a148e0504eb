"""What happened while lines were drawn, as marks: jobs, alerts, events and requests."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlencode

from django.db.models import Aggregate, Case, F, FloatField, Q, QuerySet, Value, When
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _

from dashboard.access import seen
from dashboard.choices import EventLevel, JobStatus, MessageRole, RequestOutcome
from dashboard.models import ApiRequest, Deployment, Event, Job, Message
from monitoring.models import Alert, LimitSpan
from monitoring.scopes import NOTHING, Hidden

ScopeName = Literal["fleet", "node", "deployment"]
MOST_OF_A_KIND = 200
"""Of more than these the gravest are told, then the newest."""
REQUESTS_WITHIN = timedelta(hours=2)
"""In a longer time requests would be a carpet."""
MOST_TELLING = 50
"""Requests of the API: what failed first, then what was refused for load, then the slowest."""
SLOW_TIMES, SLOW_SECONDS = 2.0, 1.0
"""The first token is late after so many times the median, and not before so many seconds."""
SLOW_WITHIN = timedelta(hours=24)
"""What usual is, is not worked out over more of them."""
LOAD_STATUSES = (429, 503)

JOB_LEVELS = {JobStatus.FAILED: "error", JobStatus.CANCELLED: "warning"}
SEVERITIES = {"critical": "error", "warning": "warning"}


@dataclass(frozen=True)
class Marker:
    """`until` is None for an instant and for what has not ended."""

    at: float
    until: float | None
    kind: Literal["job", "alert", "event", "request"]
    level: str
    text: str
    url: str

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Stretch:
    since: datetime
    until: datetime
    hidden: Hidden = NOTHING

    def within(self, begins: str, ends: str) -> Q:
        """What began before its end and was not over at its beginning."""
        open_or_later = Q(**{f"{ends}__gte": self.since}) | Q(**{f"{ends}": None})
        return Q(**{f"{begins}__lte": self.until}) & open_or_later


def markers(
    scope: ScopeName,
    pk: int | None,
    since: datetime,
    until: datetime,
    hidden: Hidden = NOTHING,
) -> list[Marker]:
    if scope != "fleet" and pk in (hidden.nodes if scope == "node" else hidden.deployments):
        return []
    stretch = Stretch(since, until, hidden)
    found = [
        *_jobs(scope, pk, stretch),
        *_alerts(scope, pk, stretch),
        *_events(scope, pk, stretch),
        *_quiet_hours(scope, pk, stretch),
        *_requests(scope, pk, stretch),
        *_api_requests(scope, pk, stretch),
    ]
    return sorted(found, key=lambda marker: marker.at)


def _jobs(scope: ScopeName, pk: int | None, stretch: Stretch) -> Iterator[Marker]:
    jobs = Job.objects.filter(stretch.within("created", "finished_at")).select_related("deployment")
    if scope == "deployment":
        jobs = jobs.filter(deployment=pk)
    elif scope == "node":
        jobs = jobs.filter(deployment__replicas__ranks__node=pk).distinct()
    for job in seen(jobs, stretch.hidden, node="")[:MOST_OF_A_KIND]:
        yield Marker(
            job.created.timestamp(),
            _seconds(job.finished_at),
            "job",
            JOB_LEVELS.get(JobStatus(job.status), "info"),
            _("%(job)s %(deployment)s: %(status)s")
            % {
                "job": job.get_kind_display(),
                "deployment": job.deployment.name,
                "status": job.get_status_display(),
            },
            reverse("deployment-detail", args=[job.deployment.name]),
        )


def _alerts(scope: ScopeName, pk: int | None, stretch: Stretch) -> Iterator[Marker]:
    alerts = Alert.objects.filter(stretch.within("fired", "resolved"), fired__isnull=False)
    alerts = seen(_own(alerts, scope, pk), stretch.hidden).select_related("node", "deployment")
    graver = Case(When(severity="critical", then=0), When(severity="warning", then=1), default=2)
    for alert in alerts.order_by(graver, "-fired")[:MOST_OF_A_KIND]:
        assert alert.fired is not None
        yield Marker(
            alert.fired.timestamp(),
            _seconds(alert.resolved),
            "alert",
            SEVERITIES.get(alert.severity, "info"),
            alert.text,
            _url("alerts"),
        )


def _events(scope: ScopeName, pk: int | None, stretch: Stretch) -> Iterator[Marker]:
    events = Event.objects.filter(at__gte=stretch.since, at__lte=stretch.until)
    events = seen(_own(events, scope, pk), stretch.hidden).select_related("node", "deployment")
    graver = Case(
        When(level=EventLevel.ERROR, then=Value(0)),
        When(level=EventLevel.WARNING, then=Value(1)),
        default=Value(2),
    )
    for event in events.order_by(graver, "-at")[:MOST_OF_A_KIND]:
        yield Marker(event.at.timestamp(), None, "event", event.level, event.text, _place(event))


def _quiet_hours(scope: ScopeName, pk: int | None, stretch: Stretch) -> Iterator[Marker]:
    spans = LimitSpan.objects.filter(stretch.within("since", "until")).select_related("node")
    if scope == "deployment":
        spans = spans.filter(node__ranks__replica__deployment=pk).distinct()
    elif scope == "node":
        spans = spans.filter(node=pk)
    for span in seen(spans, stretch.hidden, deployment="")[:MOST_OF_A_KIND]:
        yield Marker(
            span.since.timestamp(),
            _seconds(span.until),
            "event",
            "info",
            _("“%(rule)s” holds %(node)s back") % {"rule": span.why, "node": span.node.name},
            _url("monitor-noise"),
        )


def _requests(scope: ScopeName, pk: int | None, stretch: Stretch) -> Iterable[Marker]:
    """Answers of the playground: what was asked stays between the asker and the model."""
    if scope == "node" or stretch.until - stretch.since > REQUESTS_WITHIN:
        return
    answers = Message.objects.filter(
        role=MessageRole.ASSISTANT, created__gte=stretch.since, created__lte=stretch.until
    ).annotate(route=F("conversation__route"))
    if scope == "deployment":
        names = Deployment.objects.filter(pk__in=[pk]).values("name")
        answers = answers.filter(conversation__route__in=names)
    hidden = Deployment.objects.filter(pk__in=stretch.hidden.deployments).values("name")
    answers = answers.exclude(conversation__route__in=hidden)
    rows = answers.order_by("-created").values_list("created", "route", "metrics", "error")
    for created, route, metrics, error in rows[:MOST_OF_A_KIND]:
        seconds = (metrics or {}).get("seconds")
        began = created.timestamp()
        yield Marker(
            began,
            began + seconds if isinstance(seconds, int | float) else None,
            "request",
            "error" if error else "info",
            _("An answer of %(deployment)s") % {"deployment": route},
            "",
        )


class _Median(Aggregate):
    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


def _api_requests(scope: ScopeName, pk: int | None, stretch: Stretch) -> Iterator[Marker]:
    """Those that tell something. Which nodes took part in one is not known."""
    if scope == "node":
        return
    rows = ApiRequest.objects.filter(begun__gte=stretch.since, begun__lte=stretch.until)
    rows = seen(_own(rows, scope, pk), stretch.hidden, node="")
    median = None
    if stretch.until - stretch.since <= SLOW_WITHIN:
        median = rows.aggregate(it=_Median("first_token_seconds"))["it"]
    failed = Q(outcome=RequestOutcome.FAILED)
    refused = Q(outcome=RequestOutcome.REFUSED, status__in=LOAD_STATUSES)
    slow = Q(pk__in=[])
    if median is not None:
        slow = Q(first_token_seconds__gt=max(SLOW_TIMES * median, SLOW_SECONDS))
    graver = Case(When(failed, then=0), When(refused, then=1), default=2)
    late = F("first_token_seconds").desc(nulls_last=True)
    telling = rows.filter(failed | refused | slow).order_by(graver, late, "-begun")
    for row in telling[:MOST_TELLING]:
        yield Marker(
            row.begun.timestamp(),
            row.begun.timestamp() + row.seconds,
            "request",
            "error" if row.outcome == RequestOutcome.FAILED else "warning",
            _what_happened(row, median),
            f"{_url('logs')}?{urlencode({'q': row.request})}",
        )


def _what_happened(row: ApiRequest, median: float | None) -> str:
    words = {
        "route": row.route,
        "seconds": f"{row.seconds:.1f}",
        "why": row.error or row.status,
        "first": f"{row.first_token_seconds or 0.0:.1f}",
        "median": f"{median or 0.0:.1f}",
    }
    if row.outcome == RequestOutcome.FAILED:
        return _("A request to %(route)s failed after %(seconds)s s: %(why)s") % words
    if row.outcome == RequestOutcome.REFUSED:
        return _("A request to %(route)s was refused after %(seconds)s s: %(why)s") % words
    text = _("A request to %(route)s: first token after %(first)s s (median %(median)s s)")
    return text % words


def _own(rows: QuerySet[Any], scope: ScopeName, pk: int | None) -> QuerySet[Any]:
    return rows if scope == "fleet" else rows.filter(**{scope: pk})


def _place(event: Event) -> str:
    if event.deployment:
        return reverse("deployment-detail", args=[event.deployment.name])
    return reverse("node-detail", args=[event.node.name]) if event.node else ""


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()


def _url(name: str) -> str:
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""
