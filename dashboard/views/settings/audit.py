"""The audit trail: searched, read page by page, exported."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.views.decorators.http import require_safe

from dashboard.models import AuditEntry
from dashboard.texts import storable
from dashboard.views.access import admin_required

SHOWN = 100
COLUMNS = ("at", "actor", "via", "address", "action", "kind", "target", "before", "after", "why")


@dataclass(frozen=True)
class Asked:
    """What is looked for."""

    text: str
    action: str
    since: str
    until: str

    @property
    def rows(self) -> QuerySet[AuditEntry]:
        rows = AuditEntry.objects.all()
        if self.text:
            rows = rows.filter(
                Q(actor__icontains=self.text)
                | Q(target__icontains=self.text)
                | Q(why__icontains=self.text)
                | Q(address__startswith=self.text)
            )
        if self.action:
            rows = rows.filter(action__startswith=self.action)
        if since := _day(self.since):
            rows = rows.filter(at__gte=since)
        if until := _day(self.until):
            rows = rows.filter(at__lt=until + timedelta(days=1))
        return rows


def asked_of(request: HttpRequest) -> Asked:
    def told(name: str) -> str:
        return storable(request.GET.get(name, "").strip()[:100])

    return Asked(told("q"), told("action"), told("since"), told("until"))


def _day(text: str) -> datetime | None:
    try:
        day = parse_date(text)
    except ValueError:
        return None
    if day is None:
        return None
    return datetime(day.year, day.month, day.day, tzinfo=timezone.get_current_timezone())


@admin_required
@require_safe
def audit(request: HttpRequest) -> HttpResponse:
    asked = asked_of(request)
    rows = asked.rows
    before = request.GET.get("before", "")
    if before.isdecimal():
        rows = rows.filter(pk__lt=int(before[:18]))
    found = list(rows[: SHOWN + 1])
    query = request.GET.copy()
    query.pop("before", None)
    return render(
        request,
        "settings/audit.html",
        {
            "asked": asked,
            "entries": [(entry, changes_of(entry)) for entry in found[:SHOWN]],
            "older": found[SHOWN - 1].pk if len(found) > SHOWN else None,
            "query": query.urlencode(),
            "actions": AuditEntry.objects.order_by("action").values_list("action").distinct()[:200],
        },
    )


def changes_of(entry: AuditEntry) -> list[tuple[str, str | None, str | None]]:
    """Name, before, after."""
    before, after = entry.before or {}, entry.after or {}
    return [
        (name, _shown(before, name), _shown(after, name))
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]


def _shown(values: dict[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is None:
        return None
    if isinstance(value, list):
        value = ", ".join(str(one) for one in value) or "—"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:199] + "…"


@admin_required
@require_safe
def audit_export(request: HttpRequest, form: str) -> HttpResponse:
    """What was asked for, all of it, as it is read: `csv` or `jsonl`."""
    rows = asked_of(request).rows.iterator(chunk_size=500)
    lines = _csv(rows) if form == "csv" else _json_lines(rows)
    kind = "text/csv" if form == "csv" else "application/x-ndjson"
    response = StreamingHttpResponse(lines, content_type=f"{kind}; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="tandem-audit.{form}"'
    return cast(HttpResponse, response)  # What guards of views know of either is the same.


class _Line:
    """What the csv module writes to."""

    def write(self, text: str) -> str:
        return text


def _csv(rows: Iterator[AuditEntry]) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield writer.writerow(COLUMNS)
    for entry in rows:
        yield writer.writerow([_cell(entry, name) for name in COLUMNS])


def _cell(entry: AuditEntry, name: str) -> str:
    value = getattr(entry, name)
    if name == "at":
        return str(value.isoformat())
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # A spreadsheet takes these for formulas.
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t") else text


def _json_lines(rows: Iterator[AuditEntry]) -> Iterator[str]:
    for entry in rows:
        told = {name: getattr(entry, name) for name in COLUMNS}
        told["at"] = entry.at.isoformat()
        yield json.dumps(told, ensure_ascii=False) + "\n"
