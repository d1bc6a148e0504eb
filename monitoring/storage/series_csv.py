"""Series as a table: a row a time, a column a series, told where each comes from.

The first row names the columns, the second says of what kind each is and from where. An absent
value is an empty cell. Where a row sums up more than a second, a series has its extremes beside it.
"""

import csv
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.translation import gettext

from monitoring.scopes import Subject
from monitoring.storage.series import History, Series

ROWS_AT_A_TIME = 200
FORMULA = ("=", "+", "-", "@", "\t", "\r")

Number = float | None
Cell = str | Number


class _Line:
    """What `csv.writer` writes to: it hands each line on."""

    def write(self, text: str) -> str:
        return text


def csv_response(
    request: HttpRequest, history: History, subjects: Sequence[Subject], name: str
) -> StreamingHttpResponse:
    """Streamed in the way of whoever serves it."""
    pieces = _pieces(csv_lines(history, subjects))
    response = StreamingHttpResponse(
        _later(pieces) if isinstance(request, ASGIRequest) else pieces,
        content_type="text/csv; charset=utf-8",
    )
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def csv_lines(history: History, subjects: Sequence[Subject]) -> Iterator[str]:
    """In order of time; what a reader's spreadsheet would take for a formula is quoted."""
    writer = csv.writer(_Line())
    labels = {subject.topic: subject.label for subject in subjects}
    single = history.step_seconds == 1
    header: list[Cell] = ["time", "unix_seconds"]
    origin: list[Cell] = ["", ""]
    columns: list[dict[float, Number]] = []
    for series in history.series:
        told = f"{labels[series.topic]} {series.key} [{series.unit}]"
        for ending, numbers in _numbers(series, single):
            header.append(safe(f"{told}{ending}"))
            origin.append(safe(_origin(series)))
            columns.append(dict(zip(series.at, numbers, strict=True)))
    yield writer.writerow(header)
    yield writer.writerow(origin)
    moments = sorted({at for series in history.series for at in series.at})
    for at in moments:
        stamp = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
        yield writer.writerow([stamp, f"{at:.3f}", *(column.get(at) for column in columns)])


def _numbers(series: Series, single: bool) -> Iterable[tuple[str, Sequence[Number]]]:
    if single:
        return [("", series.value)]
    return [(" mean", series.value), (" low", series.low), (" high", series.high)]


def _origin(series: Series) -> str:
    if series.kind == "unavailable" and series.reason:
        return f"{series.kind}; {gettext(series.reason)}"
    return f"{series.kind}; {series.source}"


def safe(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text


def _pieces(lines: Iterator[str]) -> Iterator[str]:
    held: list[str] = []
    for line in lines:
        held.append(line)
        if len(held) >= ROWS_AT_A_TIME:
            yield "".join(held)
            held.clear()
    yield "".join(held)


async def _later(pieces: Iterator[str]) -> AsyncIterator[str]:
    for piece in pieces:
        yield piece
