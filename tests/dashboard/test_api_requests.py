"""Each request to the API leaves a row: what it took and how it ended, never a word of it."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection
from django.utils import timezone

from dashboard.choices import RequestOutcome
from dashboard.gateway.retention import forget_requests
from dashboard.models import ApiRequest, Deployment, Replica
from tests.dashboard.fake_head import FakeHead, running
from tests.dashboard.gateway_cast import panel, stage

pytestmark = pytest.mark.django_db(transaction=True)
CHAT = "/v1/chat/completions"
SECRET = "a private word"
ASK = {"model": "smol", "messages": [{"role": "user", "content": SECRET}]}
STREAM = {**ASK, "stream": True, "stream_options": {"include_usage": True}}


@sync_to_async
def the_rows() -> list[ApiRequest]:
    return list(ApiRequest.objects.select_related("key").order_by("begun"))


async def asked(head: FakeHead | None, *bodies: dict[str, Any] | bytes) -> list[ApiRequest]:
    """The rows of requests that were heard to their ends, one after the other."""
    secret, numbers = await sync_to_async(stage)(head), []
    async with panel(secret) as client:
        for body in bodies:
            sent = body if isinstance(body, bytes) else json.dumps(body)
            response = await client.post(CHAT, data=sent)
            await response.read()
            numbers.append(response.headers["X-Request-Id"].partition(".")[0])
    rows = await the_rows()
    assert [row.request for row in rows] == numbers
    return rows


@sync_to_async
def everything() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT r::text FROM dashboard_apirequest r")
        return str(cursor.fetchall())


async def test_a_stream_leaves_what_it_took_and_no_word_of_it() -> None:
    async with running(FakeHead(thoughts=("a hidden thought",))) as head:
        (row,) = await asked(head, STREAM)
    assert (row.outcome, row.status, row.error) == (RequestOutcome.ANSWERED, 200, "")
    assert (row.endpoint, row.route, row.streamed) == (CHAT, "smol", True)
    assert (row.prompt_tokens, row.completion_tokens) == (7, 3)
    assert row.first_token_seconds is not None
    assert 0 < row.first_token_seconds <= row.seconds
    assert row.key is not None
    assert row.user_id == row.key.user_id
    assert row.deployment_id == (await Deployment.objects.aget()).pk
    assert row.launch == (await Replica.objects.aget()).launch
    stored = await everything()
    assert not any(word in stored for word in ("private", "Hel", "wörld", "hidden"))


async def test_what_nobody_told_is_absent() -> None:
    """The first token of an answer that comes whole, and tokens of a stream without usage."""
    async with running(FakeHead()) as head:
        whole, stream = await asked(head, ASK, {**ASK, "stream": True})
    assert (whole.outcome, whole.status) == (RequestOutcome.ANSWERED, 200)
    assert (whole.streamed, whole.first_token_seconds) == (False, None)
    assert (stream.outcome, stream.prompt_tokens) == (RequestOutcome.ANSWERED, None)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_caller_that_goes_is_told_from_one_that_is_answered(stream: bool) -> None:
    async with running(FakeHead(hold_at=1)) as head:
        secret = await sync_to_async(stage)(head)
        async with panel(secret) as client:
            asking = asyncio.ensure_future(client.post(CHAT, json={**ASK, "stream": stream}))
            await head.wait(head.held)
            if stream:
                (await asking).close()
            asking.cancel()
            await head.wait(head.aborted)
    (row,) = await the_rows()
    assert (row.outcome, row.error) == (RequestOutcome.CUT_OFF, "")
    assert row.status == (200 if stream else None)


async def test_what_the_head_refuses_leaves_its_code_and_never_a_sentence() -> None:
    refusals = [
        (400, "context_length_exceeded", RequestOutcome.REFUSED, "context_length_exceeded"),
        (503, "queue_full", RequestOutcome.REFUSED, "queue_full"),
        (500, "engine_error", RequestOutcome.FAILED, "engine_error"),
        (400, f"not {SECRET}", RequestOutcome.REFUSED, "invalid"),
    ]
    async with running(FakeHead()) as head:
        secret = await sync_to_async(stage)(head)
        async with panel(secret) as client:
            for status, code, _outcome, _error in refusals:
                error = {"message": f"You said “{SECRET}”.", "type": "invalid", "code": code}
                head.refusal = (status, {"error": error})
                async with client.post(CHAT, json=STREAM) as response:
                    assert response.status == status
    rows = await the_rows()
    found = [(row.status, row.outcome, row.error) for row in rows]
    assert found == [(status, outcome, error) for status, _code, outcome, error in refusals]


async def test_what_the_panel_refuses_leaves_its_code() -> None:
    unknown, broken = await asked(None, {**ASK, "model": "gp\x00t" + "x" * 200}, b"{")
    assert (unknown.status, unknown.error) == (404, "model_not_found")
    assert unknown.route.startswith("gptx")
    assert unknown.deployment_id is None
    assert (broken.status, broken.error, broken.route) == (400, "invalid_json", "")
    assert unknown.outcome == broken.outcome == RequestOutcome.REFUSED


async def test_a_stream_that_breaks_off_has_failed() -> None:
    async with running(FakeHead(hold_at=1, dies=True)) as head:
        head.release.set()
        (row,) = await asked(head, STREAM)
    assert (row.status, row.outcome, row.error) == (200, RequestOutcome.FAILED, "upstream_failed")


async def test_strangers_leave_nothing() -> None:
    async with panel("sk-tdm-unknown") as client:
        response = await client.post(CHAT, json=ASK)
        response.release()
    assert response.status == 401
    assert await the_rows() == []


@pytest.mark.django_db(transaction=False)
def test_old_rows_go() -> None:
    now = timezone.now()
    for number, age in (("req_new", timedelta(hours=1)), ("req_old", settings.REQUESTS_KEEP)):
        ApiRequest.objects.create(
            request=number, endpoint=CHAT, begun=now - age, seconds=1.0, outcome="answered"
        )
    forget_requests()
    assert ApiRequest.objects.get().request == "req_new"
