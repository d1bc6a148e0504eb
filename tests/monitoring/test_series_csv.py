"""A page's charts as a table for a spreadsheet: nothing absent is 0, nothing is a formula."""

import csv
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.http import StreamingHttpResponse
from django.test import AsyncClient, Client
from hypothesis import given
from hypothesis import strategies as st

from dashboard.models import Node
from monitoring.metrics import CPU_UTILIZATION, FAN_SPEED
from monitoring.samples import measured
from monitoring.storage.rollup import roll_up
from monitoring.storage.series_csv import safe
from monitoring.storage.store import store
from tests.monitoring.cast import frame_of, make_node, now
from tests.monitoring.past import REASON, beginning, keep


@pytest.fixture
def node(db: None) -> Node:
    return make_node()


def table(node: Node, metrics: str, **query: float) -> list[list[str]]:
    browser = Client()
    browser.force_login(User.objects.create_user("ada"))
    told = {name: str(number) for name, number in query.items()}
    given = {"scope": "node", "id": str(node.pk), "metrics": metrics, **told}
    answer = browser.get("/telemetry/series.csv", given)
    assert answer["Content-Type"].startswith("text/csv")
    assert "attachment" in answer["Content-Disposition"]
    assert isinstance(answer, StreamingHttpResponse)
    text = answer.getvalue().decode()
    return list(csv.reader(StringIO(text)))


def test_a_row_is_a_time_and_a_column_a_series_with_its_unit(node: Node) -> None:
    start = beginning()
    keep(node.pk, start, [(float(n), "cent", (n / 10, 0.0, 0.0, 0.0)) for n in range(5)])
    first = start.timestamp()
    rows = table(node, CPU_UTILIZATION.name, **{"from": first, "to": first + 5})
    assert rows[0] == ["time", "unix_seconds", "box-1 cpu_utilization_ratio@host [ratio]"]
    assert rows[1] == ["", "", "measured; m"]
    assert [row[1:] for row in rows[2:]] == [[f"{first + n:.3f}", f"{n / 10}"] for n in range(5)]
    assert rows[2][0] == start.isoformat(timespec="milliseconds")


def test_an_absent_value_is_an_empty_cell_and_its_reason_stands_above(node: Node) -> None:
    start = beginning()
    keep(node.pk, start, [(0.0, "Cent", (1.0, 0.0, 0.0, 0.0))])
    first = start.timestamp()
    rows = table(node, CPU_UTILIZATION.name, **{"from": first, "to": first + 5})
    assert rows[1][2] == f"unavailable; {REASON}"
    assert rows[2][2] == ""


def test_a_minute_has_its_extremes_beside_its_mean(node: Node) -> None:
    start = beginning()
    keep(node.pk, start, [(float(n), "c", (n / 100, 0.0, 0.0, 0.0)) for n in range(60)])
    roll_up(start + timedelta(minutes=1))
    first = start.timestamp()
    rows = table(node, CPU_UTILIZATION.name, **{"from": first, "to": first + 900, "points": 15})
    assert [name.rpartition(" ")[2] for name in rows[0][2:]] == ["mean", "low", "high"]
    assert [float(cell) for cell in rows[2][2:]] == pytest.approx([0.295, 0.0, 0.59])


def test_a_name_that_a_spreadsheet_would_run_is_quoted() -> None:
    assert safe("=HYPERLINK(1)") == "'=HYPERLINK(1)"
    assert safe("box") == "box"


def test_a_label_from_a_device_cannot_become_a_formula(node: Node) -> None:
    node.name = "=1+2"
    node.save(update_fields=["name"])
    fan = measured(FAN_SPEED, 900.0, source="=cmd", scope="host", label="@x")
    store([frame_of(node.pk, 1, now() - 2, [fan])])
    for row in table(node, FAN_SPEED.name, minutes=1):
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row)


@given(st.text())
def test_no_text_becomes_a_formula(text: str) -> None:
    assert not safe(text).startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_connection_left")
async def test_it_is_streamed_by_the_server_that_people_use() -> None:
    browser = AsyncClient()
    await browser.aforce_login(await User.objects.acreate_user("ada"))
    answer = await browser.get("/telemetry/series.csv", {"scope": "fleet"})
    assert isinstance(answer, StreamingHttpResponse)
    pieces = [piece async for piece in answer]
    assert b"".join(pieces).startswith(b"time,unix_seconds")
