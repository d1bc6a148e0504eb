"""The stored past of what a page looks at: as JSON for charts, as CSV for people."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Annotated, Literal

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from msgspec import Meta

from monitoring import metrics
from monitoring.charts import panels as charts
from monitoring.charts.derived import derived, only_derived
from monitoring.scopes import Subject, hidden_from, subjects
from monitoring.storage.series import History, history
from monitoring.storage.series_csv import csv_response
from monitoring.storage.series_json import series_json

DEFAULT_MINUTES = 15
FURTHEST = 10 * 366 * 24 * 3600
"""Seconds; a longer time is no question about this fleet."""

Moment = Annotated[float, Meta(ge=0, le=32_503_680_000)]


class SeriesQuery(msgspec.Struct, frozen=True, rename={"since": "from", "until": "to"}):
    scope: Literal["fleet", "node", "deployment"]
    id: int | None = None
    since: Moment | None = None
    until: Moment | None = None
    minutes: Annotated[float, Meta(gt=0, le=FURTHEST / 60)] | None = None
    points: Annotated[int, Meta(ge=2, le=20_000)] = 1000
    metrics: str = ""
    """Names with commas; those the page's charts draw when left out."""


@dataclass(frozen=True)
class Asked:
    """A question about the past, answered."""

    query: SeriesQuery
    since: datetime
    until: datetime
    now: datetime
    subjects: Sequence[Subject]
    history: History


class Refused(Exception):
    """A question that cannot be answered as it stands; said in the reader's language."""


def _asked(
    view: Callable[[Asked, HttpRequest], HttpResponseBase],
) -> Callable[..., HttpResponseBase]:
    """For whoever is signed in: `?scope&id&from&to&points&metrics`, or `minutes=N` up to now."""

    @require_GET
    @never_cache
    @wraps(view)
    def answer(request: HttpRequest) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return JsonResponse({"error": _("Sign in to see telemetry.")}, status=401)
        try:
            return view(_answer(request), request)
        except (Refused, msgspec.ValidationError) as error:
            return JsonResponse({"error": str(error)}, status=400)

    return answer


@_asked
def telemetry_series(asked: Asked, _request: HttpRequest) -> HttpResponse:
    return HttpResponse(
        msgspec.json.encode(
            series_json(asked.history, asked.subjects, asked.since, asked.until, asked.now)
        ),
        content_type="application/json",
    )


@_asked
def telemetry_csv(asked: Asked, request: HttpRequest) -> HttpResponseBase:
    name = f"telemetry-{asked.query.scope}-{asked.since:%Y%m%dT%H%M%S}Z.csv"
    return csv_response(request, asked.history, asked.subjects, name)


def _answer(request: HttpRequest) -> Asked:
    given = {name: value for name, value in request.GET.items() if value}
    query = msgspec.convert(given, SeriesQuery, strict=False)
    now = timezone.now()
    since, until = _span(query, now)
    wanted = subjects(query.scope, query.id, hidden_from(request.user))
    names = _metrics(query)
    read = derived if only_derived(names) else history
    found = read(wanted, names, since, until, query.points)
    return Asked(query, since, until, now, wanted, found)


def _span(query: SeriesQuery, now: datetime) -> tuple[datetime, datetime]:
    if any(
        moment is not None and not math.isfinite(moment) for moment in (query.since, query.until)
    ):
        raise Refused(_("The time range cannot be read."))
    until = now if query.until is None else datetime.fromtimestamp(query.until, UTC)
    if query.since is None:
        return until - timedelta(minutes=query.minutes or DEFAULT_MINUTES), until
    since = datetime.fromtimestamp(query.since, UTC)
    if not timedelta(0) < until - since <= timedelta(seconds=FURTHEST):
        raise Refused(_("The time range must end after it begins, and not ten years later."))
    return since, until


def _metrics(query: SeriesQuery) -> Collection[str]:
    if not query.metrics:
        return charts.metrics(query.scope)
    names = frozenset(query.metrics.split(","))
    unknown = sorted(names - metrics.METRICS.keys())
    if unknown:
        raise Refused(_("There is no metric %(name)s.") % {"name": unknown[0][:64]})
    return names
