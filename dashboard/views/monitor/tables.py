"""A page's table as CSV: what is absent is an empty cell, and no cell is a formula."""

import csv
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal

from django.http import HttpResponse

Cell = str | int | float | Decimal | date | datetime | None

FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_table(name: str, head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> HttpResponse:
    answer = HttpResponse(content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    writer = csv.writer(answer)
    writer.writerow(head)
    for row in rows:
        writer.writerow([_cell(cell) for cell in row])
    return answer


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return f"'{cell}" if cell.startswith(FORMULA) else cell
    if isinstance(cell, Decimal):
        return format(round(cell, 8).normalize(), "f")
    if isinstance(cell, date):
        return cell.isoformat()
    return repr(cell)
