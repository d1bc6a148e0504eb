"""One streamed request as a good client makes it: it reconnects where it was cut off."""

import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 240.0
"""Seconds until a request without an end counts as one without a terminal event."""
SILENCE = 150.0
"""Seconds that a connection may say nothing."""
RETRY_SECONDS = 0.25
DONE = b"[DONE]"
BUSY = (429, 502, 503, 504)


@dataclass
class Answer:
    """What came of one request. `chunks` are texts as they came, `moved` when each did."""

    chunks: list[str] = field(default_factory=list)
    moved: list[float] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    finish: str = ""
    failure: str = ""
    """Why it ended without its last token."""
    ended: bool = False
    """Whether the stream said that it ends, well or with an error."""
    reconnected: int = 0
    refused: int = 0
    request: str = ""
    last_event: str = ""

    @property
    def text(self) -> str:
        return "".join(self.chunks)


class Asker:
    """`moved` is called with each piece of text as it comes."""

    def __init__(self, url: str, key: str, moved: Callable[[], None] = lambda: None) -> None:
        address = urlsplit(url)
        self._host, self._port = address.hostname or "", address.port or 80
        self._headers = {"Authorization": f"Bearer {key}"}
        self._url, self._key = url, key
        self._moved = moved

    def with_notice(self, moved: Callable[[], None]) -> "Asker":
        """The same, for somebody else."""
        return Asker(self._url, self._key, moved)

    def ask(self, body: dict[str, Any], stop: Callable[[], bool] = lambda: False) -> Answer:
        """Until it ends, however it does, or until `stop`, which hangs up."""
        answer = Answer()
        deadline = time.monotonic() + PATIENCE
        while not answer.ended and not stop():
            if time.monotonic() > deadline:
                answer.failure = answer.failure or f"no end within {PATIENCE:g} s"
                break
            try:
                self._connect(answer, body, stop)
            except (OSError, http.client.HTTPException, ValueError) as error:
                answer.comments.append(f"broke: {type(error).__name__} {error}")
            if not answer.ended:
                time.sleep(RETRY_SECONDS)
        return answer

    def whole(self, body: dict[str, Any]) -> str:
        """Ask without streaming; what went wrong, or nothing."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=SILENCE)
        plain = {name: it for name, it in body.items() if not name.startswith("stream")}
        try:
            headers = self._headers | {"Content-Type": "application/json"}
            connection.request("POST", "/v1/completions", json.dumps(plain), headers)
            response = connection.getresponse()
            words = response.read()
        finally:
            connection.close()
        return "" if response.status == 200 else f"status {response.status}: {words[:200]!r}"

    def _connect(self, answer: Answer, body: dict[str, Any], stop: Callable[[], bool]) -> None:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=SILENCE)
        try:
            response = self._send(connection, answer, body)
            if response.status != 200:
                _refused(answer, response)
                return
            answer.request = response.headers.get("X-Request-Id", "") or answer.request
            for event in _events(response):
                _take(answer, event, self._moved)
                if answer.ended or stop():
                    break
        finally:
            connection.close()

    def _send(
        self, connection: http.client.HTTPConnection, answer: Answer, body: dict[str, Any]
    ) -> http.client.HTTPResponse:
        """The question, or, once it was accepted, the rest of its answer."""
        if not answer.request:
            headers = self._headers | {"Content-Type": "application/json"}
            connection.request("POST", "/v1/completions", json.dumps(body), headers)
        else:
            answer.reconnected += 1
            headers = self._headers | {"Last-Event-ID": answer.last_event}
            if not answer.last_event:
                del headers["Last-Event-ID"]
            connection.request("GET", f"/v1/streams/{answer.request}", headers=headers)
        _notice_a_dead_peer(connection.sock)
        return connection.getresponse()


def _notice_a_dead_peer(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _refused(answer: Answer, response: http.client.HTTPResponse) -> None:
    """Busy is worth another try; anything else ends it."""
    words = response.read(500).decode(errors="replace")
    if response.status in BUSY:
        answer.refused += 1
        answer.comments.append(f"{response.status}: {words[:120]}")
        return
    answer.ended, answer.failure = True, f"status {response.status}: {words}"


def _events(response: http.client.HTTPResponse) -> Iterator[list[bytes]]:
    """The lines of each whole event or comment; one that was cut off does not count."""
    lines: list[bytes] = []
    while line := response.readline():
        if not line.endswith(b"\n"):
            return
        if line := line.rstrip(b"\r\n"):
            lines.append(line)
        elif lines:
            yield lines
            lines = []


def _take(answer: Answer, event: list[bytes], moved: Callable[[], None]) -> None:
    for line in event:
        name, _colon, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"":
            answer.comments.append(value.decode(errors="replace"))
        elif name == b"data":
            _take_data(answer, value, moved)
        elif name == b"id":
            answer.last_event = value.decode()


def _take_data(answer: Answer, data: bytes, moved: Callable[[], None]) -> None:
    if data == DONE:
        answer.ended = True
        if not answer.finish:
            answer.failure = answer.failure or "[DONE] without a finish reason"
        return
    chunk = json.loads(data)
    if error := chunk.get("error"):
        answer.ended, answer.failure = True, str(error.get("message"))
    answer.usage = chunk.get("usage") or answer.usage
    for choice in chunk.get("choices", ()):
        answer.finish = choice["finish_reason"] or answer.finish
        if choice["text"]:
            answer.chunks.append(choice["text"])
            answer.moved.append(time.monotonic())
            moved()
        answer.margins += _margins(choice.get("logprobs"))


def _margins(logprobs: dict[str, Any] | None) -> list[float]:
    """How far each token was ahead of the next best one."""
    found = []
    for top in (logprobs or {}).get("top_logprobs") or ():
        best, second = sorted(top.values(), reverse=True)[:2]
        found.append(best - second)
    return found
