"""Records of requests are written beside them, and a database that is away is waited for."""

import logging
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError

from dashboard.gateway import record_writer
from dashboard.gateway.record_writer import RecordWriter
from dashboard.models import ApiRequest
from tests.dashboard.gateway_cast import make_deployment, make_key, make_user

database = pytest.mark.django_db(transaction=True)
BEGUN = datetime(2026, 5, 1, tzinfo=UTC)


def row(number: int, **fields: int) -> ApiRequest:
    return ApiRequest(
        request=f"req_{number}",
        route="smol",
        endpoint="/v1/completions",
        begun=BEGUN + timedelta(seconds=number),
        seconds=1.0,
        outcome="answered",
        **fields,
    )


@sync_to_async
def stored() -> list[str]:
    return list(ApiRequest.objects.order_by("begun").values_list("request", flat=True))


class Away:
    """Keeps what is written, once the database is no longer away."""

    def __init__(self, times: int = 0) -> None:
        self.left = times
        self.rows: list[str] = []

    def insert(self, rows: Sequence[ApiRequest]) -> None:
        self.left -= 1
        if self.left >= 0:
            raise OperationalError("the server closed the connection")
        self.rows += [row.request for row in rows]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Away:
    away = Away()
    monkeypatch.setattr(record_writer, "_insert", away.insert)
    return away


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_writer, "SPACING_SECONDS", 0.01)
    monkeypatch.setattr(record_writer, "FIRST_DELAY", 0.01)


@pytest.fixture
async def writer() -> AsyncIterator[RecordWriter]:
    made = RecordWriter()
    yield made
    await made.close()


async def written(writer: RecordWriter) -> None:
    """Wait for its task, which ends when nothing waits."""
    assert writer._task is not None
    await writer._task


async def test_a_database_that_is_away_for_a_moment_costs_no_row(
    writer: RecordWriter, kept: Away
) -> None:
    kept.left = 2
    for number in range(5):
        writer.put(row(number))
    await written(writer)
    assert kept.rows == [f"req_{number}" for number in range(5)]


async def test_of_too_many_the_oldest_are_lost_and_counted(
    writer: RecordWriter,
    kept: Away,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(record_writer, "MOST_WAITING", 3)
    for number in range(5):
        writer.put(row(number))
    with caplog.at_level(logging.ERROR, logger=record_writer.__name__):
        await written(writer)
    assert kept.rows == ["req_2", "req_3", "req_4"]
    assert "2 records of API requests are lost." in caplog.text


async def test_rows_that_came_while_a_batch_failed_take_the_place_of_its_oldest(
    writer: RecordWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_writer, "MOST_WAITING", 3)
    writer._waiting.extend([row(3), row(4)])
    writer._take_back([row(1), row(2)])
    assert [each.request for each in writer._waiting] == ["req_2", "req_3", "req_4"]
    assert writer._lost == 1


async def test_the_end_writes_what_waits(
    writer: RecordWriter, kept: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_writer, "SPACING_SECONDS", 600.0)
    writer.put(row(1))
    await writer.close()
    assert kept.rows == ["req_1"]


async def test_many_are_written_at_once_without_a_wait(
    writer: RecordWriter, kept: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_writer, "SPACING_SECONDS", 600.0)
    monkeypatch.setattr(record_writer, "MOST_AT_ONCE", 3)
    for number in range(3):
        writer.put(row(number))
    await written(writer)
    assert len(kept.rows) == 3


async def test_an_end_without_a_database_tells_what_is_lost(
    writer: RecordWriter, kept: Away, caplog: pytest.LogCaptureFixture
) -> None:
    kept.left = 10_000
    writer.put(row(1))
    with caplog.at_level(logging.ERROR, logger=record_writer.__name__):
        await writer.close()
    assert "1 records of API requests are lost." in caplog.text


@database
async def test_what_was_written_before_the_connection_broke_is_not_written_twice(
    writer: RecordWriter,
) -> None:
    for _time in range(2):
        writer.put(row(1))
        await written(writer)
    assert await stored() == ["req_1"]


@database
async def test_a_row_that_cannot_be_stored_costs_no_other(
    writer: RecordWriter, caplog: pytest.LogCaptureFixture
) -> None:
    writer.put(row(1))
    writer.put(row(2, prompt_tokens=2**63))
    with caplog.at_level(logging.WARNING, logger=record_writer.__name__):
        await written(writer)
    assert await stored() == ["req_1"]
    assert "The record of request req_2 cannot be stored" in caplog.text


@database
async def test_what_is_gone_is_absent_before_and_after_the_writing(writer: RecordWriter) -> None:
    key, _secret = await sync_to_async(lambda: make_key(make_user()))()
    deployment = await sync_to_async(make_deployment)()
    writer.put(row(1, key_id=key.pk, user_id=key.user_id))
    user = key.user_id
    await sync_to_async(key.delete)()
    await written(writer)
    found = await ApiRequest.objects.aget()
    assert (found.key_id, found.user_id, found.deployment_id) == (None, user, deployment.pk)
    await sync_to_async(deployment.delete)()
    found = await ApiRequest.objects.aget()
    assert (found.deployment_id, found.route) == (None, "smol")
