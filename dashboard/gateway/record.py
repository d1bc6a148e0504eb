"""What is known of one API request while it goes. Never any text of it."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import msgspec
from django.utils import timezone

from dashboard import leaving
from dashboard.choices import RequestOutcome
from dashboard.gateway.budgets.limits import Price
from dashboard.gateway.errors import ApiError
from dashboard.gateway.hold import Request
from dashboard.gateway.record_writer import record_writer
from dashboard.models import ApiKey, ApiRequest
from dashboard.texts import storable

LEFT = "panel_left"
"""This process ended first; the caller may go on with another one."""
Settle = Callable[[str, int | None, int | None], None]
LONGEST_ROUTE = 80
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,60}")


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[msgspec.Raw] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    text: str | None = None

    @property
    def says_something(self) -> bool:
        delta = self.delta or _Delta()
        return bool(self.text or delta.content or delta.reasoning_content or delta.tool_calls)


class _Failure(msgspec.Struct):
    code: str | int | None = None
    type: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: _Failure | None = None


_chunks: msgspec.json.Decoder[_Chunk] = msgspec.json.Decoder(_Chunk)


class Record:
    """Becomes a row when it ends, once a good key is known. A passage tells it what happens."""

    def __init__(self, request_id: str, endpoint: str) -> None:
        self._began = time.monotonic()
        self._row = ApiRequest(request=request_id, endpoint=endpoint, begun=timezone.now())
        self._complete = False
        self._outcome: RequestOutcome | None = None
        self._ended = False
        self._charge: tuple[Price, int, int, Settle] | None = None

    @property
    def begun(self) -> datetime:
        return self._row.begun

    def charges(self, price: Price, tokens: int, micros: int, settle: Settle) -> None:
        """It counts against budgets: at most so much, and in the end what it took."""
        self._charge = price, tokens, micros, settle

    def came_from(self, key: ApiKey) -> None:
        self._row.key_id, self._row.user_id = key.pk, key.user_id

    def asks(self, request: Request) -> None:
        self._row.request = request.id
        self._row.route = storable(request.route)[:LONGEST_ROUTE]
        self._row.streamed = request.stream

    def taken(self, launch: str) -> None:
        self._row.launch = launch

    def heard(self, data: bytes) -> None:
        first = self._row.streamed and self._row.first_token_seconds is None
        if not first and b'"usage"' not in data and b'"error":' not in data:
            return
        try:
            chunk = _chunks.decode(data)
        except msgspec.DecodeError:
            return  # Whoever reads the answer says so.
        if first and any(choice.says_something for choice in chunk.choices):
            self._row.first_token_seconds = self._passed()
        if chunk.usage is not None:
            self._row.prompt_tokens = _count(chunk.usage.prompt_tokens)
            self._row.completion_tokens = _count(chunk.usage.completion_tokens)
        if chunk.error is not None:
            self._outcome = self._outcome or RequestOutcome.FAILED
            self._row.error = _code(chunk.error.code) or _code(chunk.error.type)

    def answered(self, status: int) -> None:
        self._row.status = status
        if status >= 400:
            self._outcome = _without_answer(status)

    def failed(self, error: ApiError) -> None:
        """Where the caller has a status already, it keeps that."""
        self._row.status = self._row.status or error.status
        self._row.error = _code(error.code) or error.type
        self._outcome = _without_answer(error.status)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """What is raised within is how it ended."""
        try:
            yield
        except ApiError as error:
            self.failed(error)
            self.end()
            raise

    def done(self) -> None:
        self._complete = True

    def end(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._row.seconds = self._passed()
        if self._outcome is not None:
            self._row.outcome = self._outcome
        elif self._complete:
            self._row.outcome = RequestOutcome.ANSWERED
        else:
            self._row.outcome = RequestOutcome.CUT_OFF
            self._row.error = LEFT if leaving.asked() else ""
        self._settle()
        if self._row.key_id is not None:
            record_writer().put(self._row)

    def _settle(self) -> None:
        if self._charge is None:
            return
        price, tokens, micros, settle = self._charge
        prompt, completion = self._row.prompt_tokens, self._row.completion_tokens
        if prompt is not None:
            tokens = prompt + (completion or 0)
            micros = price.micros(prompt, completion or 0)
        counts = prompt is not None or self._row.outcome != RequestOutcome.REFUSED
        if counts:
            self._row.charged_tokens, self._row.charged_micros = tokens, micros
        settle(self._row.request, self._row.charged_tokens, self._row.charged_micros)

    def close(self) -> None:
        """The request is over, however it ended. In the loop's thread."""
        self.end()

    def _passed(self) -> float:
        return time.monotonic() - self._began


def _without_answer(status: int) -> RequestOutcome:
    """Who has too much to do, or is not there yet, refuses; other errors of ours are failures."""
    refused = status < 500 or status == 503
    return RequestOutcome.REFUSED if refused else RequestOutcome.FAILED


def _code(value: str | int | None) -> str:
    """A sentence is no code: it may quote what was asked."""
    text = str(value or "")
    return text if _CODE.fullmatch(text) else ""


def _count(tokens: int | None) -> int | None:
    return tokens if tokens is not None and 0 <= tokens < 2**63 else None
