"""The log page: recent lines of everything, searched, followed and taken along."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dashboard.forms.logs import LogForm
from dashboard.models import LogLine, Replica
from dashboard.views.access import hidden_of

PAGE = 200
MOST_TAKEN = 50_000
"""Lines of one download."""
BITE = 1000
LONGEST_NUMBER = 18
"""Digits of a line's number that Postgres can take."""


@dataclass(frozen=True)
class Shown:
    """One line as the page has it."""

    line: LogLine
    text: SafeString
    deployment: str


@login_required
@require_GET
@never_cache
def logs(request: HttpRequest) -> HttpResponse:
    """`before` a line's number: older ones. `after`: only what has come since, as a fragment."""
    form = LogForm(_asked(request), hidden_of(request))
    if not form.is_valid():
        return render(request, "monitor/logs.html", {"form": form, "lines": []}, status=422)
    found = form.lines()
    if (after := _number(request, "after")) is not None:
        rows = list(found.filter(pk__gt=after)[:PAGE])
        return render(request, "monitor/_log_lines.html", {"lines": _shown(rows, form)})
    before = _number(request, "before")
    rows = list((found.filter(pk__lt=before) if before is not None else found)[: PAGE + 1])
    more = len(rows) > PAGE
    rows = rows[:PAGE]
    return render(
        request,
        "monitor/logs.html",
        {
            "form": form,
            "lines": _shown(rows, form),
            "query": _query(request),
            "older": rows[-1].pk if more else None,
            "newest": before is None,
            "last": rows[0].pk if rows else 0,
            "narrowed": any(form.cleaned_data.values()),
        },
    )


@login_required
@require_GET
@never_cache
def download(request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    """The same lines as text, oldest first."""
    form = LogForm(_asked(request), hidden_of(request))
    if not form.is_valid():
        return render(request, "monitor/logs.html", {"form": form, "lines": []}, status=422)
    answer = StreamingHttpResponse(_lines(form.lines()), content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="tandem-log.txt"'
    return answer


def _asked(request: HttpRequest) -> dict[str, str]:
    """Links between pages say `from` and `to`, which the form cannot call its fields."""
    asked = {name: str(value) for name, value in request.GET.items()}
    return {"begin": asked.pop("from", ""), "end": asked.pop("to", ""), **asked}


def _query(request: HttpRequest) -> str:
    query = request.GET.copy()
    for name in ("before", "after"):
        query.pop(name, None)
    for name in [name for name, value in query.items() if not value]:
        del query[name]
    return query.urlencode()


def _number(request: HttpRequest, name: str) -> int | None:
    value = request.GET.get(name, "")
    short = value.isascii() and value.isdecimal() and len(value) <= LONGEST_NUMBER
    return int(value) if short else None


def _shown(rows: list[LogLine], form: LogForm) -> list[Shown]:
    launches = {row.launch for row in rows if row.launch}
    replicas = Replica.objects.filter(launch__in=launches).select_related("deployment")
    names = {replica.launch: replica.deployment.name for replica in replicas}
    wanted = form.cleaned_data["q"]
    return [
        Shown(
            row,
            highlighted(row.text, wanted),
            row.job.deployment.name if row.job else names.get(row.launch, ""),
        )
        for row in rows
    ]


def highlighted(text: str, wanted: str) -> SafeString:
    """With what was searched for marked, whatever its case."""
    if not wanted:
        return mark_safe(escape(text))
    parts = re.split(f"({re.escape(wanted)})", text, flags=re.IGNORECASE)
    marked = (
        format_html("<mark>{}</mark>", p) if n % 2 else escape(p) for n, p in enumerate(parts)
    )
    return mark_safe("".join(marked))


def _lines(found: QuerySet[LogLine]) -> Iterator[bytes]:
    newest = found.values_list("pk", flat=True)[:MOST_TAKEN]
    oldest = min(newest, default=None)
    if oldest is None:
        return
    for row in found.filter(pk__gte=oldest).order_by("pk").iterator(BITE):
        at = row.at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        parts = [at, row.node.name if row.node else "-", row.launch or "-", row.source]
        text = row.text.replace("\n", "\n    ")
        yield f"{' '.join([*parts, row.level or '-'])} {text}\n".encode()


urlpatterns = [
    path("logs/", logs, name="logs"),
    path("logs/download/", download, name="logs-download"),
]
