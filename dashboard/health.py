"""`/healthz`: this process is up. `/readyz`: the database, the broker and a worker answer."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypedDict

import redis
from celery.exceptions import CeleryError
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.cache import never_cache
from kombu.exceptions import KombuError

from dashboard.celery import app

log = logging.getLogger(__name__)

ANSWER_SECONDS = 2
"""How long each part may take to answer."""
REMEMBERED_SECONDS = 2.0
"""Probes may come often; the answer may be this old."""


class Part(TypedDict):
    ok: bool
    detail: str


def ask_database() -> Part:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        log.warning("The database does not answer: %s", error)
        return Part(ok=False, detail="The database does not answer.")
    finally:
        connection.close()
    return Part(ok=True, detail="answers")


def ask_broker() -> Part:
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=ANSWER_SECONDS,
            socket_connect_timeout=ANSWER_SECONDS,
        ) as client:
            client.ping()
    except redis.RedisError as error:
        log.warning("The broker does not answer: %s", error)
        return Part(ok=False, detail="The broker does not answer.")
    return Part(ok=True, detail="answers")


def ask_worker() -> Part:
    """A ping through the broker: a worker that hangs does not answer it."""
    try:
        with app.connection_for_write(connect_timeout=ANSWER_SECONDS) as broker:
            broker.ensure_connection(max_retries=1, timeout=ANSWER_SECONDS)
            inspect = app.control.inspect(timeout=ANSWER_SECONDS, limit=1, connection=broker)
            answers = inspect.ping()
    except (KombuError, CeleryError, redis.RedisError, OSError) as error:
        log.warning("No worker can be asked: %s", error)
        return Part(ok=False, detail="No worker can be asked, the broker does not answer.")
    if not answers:
        return Part(ok=False, detail=f"No worker answered within {ANSWER_SECONDS} s.")
    return Part(ok=True, detail=", ".join(answers))


class Readiness:
    """Asks the parts, each on its own thread, at most one question a part at a time."""

    def __init__(self, questions: dict[str, Callable[[], Part]]) -> None:
        self._questions = questions
        self._threads = {name: ThreadPoolExecutor(1, f"readyz-{name}") for name in questions}
        self._asking = asyncio.Lock()
        self._parts: dict[str, Part] = {}
        self._asked_at = float("-inf")

    async def parts(self) -> dict[str, Part]:
        async with self._asking:
            if time.monotonic() - self._asked_at > REMEMBERED_SECONDS:
                answers = await asyncio.gather(*map(self._ask, self._questions))
                self._parts = dict(zip(self._questions, answers, strict=True))
                self._asked_at = time.monotonic()
        return self._parts

    def close(self) -> None:
        for thread in self._threads.values():
            thread.shutdown(wait=True)

    async def _ask(self, name: str) -> Part:
        loop = asyncio.get_running_loop()
        answer = loop.run_in_executor(self._threads[name], self._questions[name])
        try:
            return await asyncio.wait_for(answer, 2 * ANSWER_SECONDS)
        except TimeoutError:
            return Part(ok=False, detail=f"No answer within {2 * ANSWER_SECONDS} s.")


QUESTIONS = {"database": ask_database, "broker": ask_broker, "worker": ask_worker}
readiness = Readiness(QUESTIONS)


@never_cache
async def healthz(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok", "version": settings.VERSION})


@never_cache
async def readyz(request: HttpRequest) -> JsonResponse:
    parts = await readiness.parts()
    ready = all(part["ok"] for part in parts.values())
    return JsonResponse(parts, status=200 if ready else 503)


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
]
