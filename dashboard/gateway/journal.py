"""What is known of an answer on its way: enough for another head to go on with it."""

from typing import Any

import msgspec

from dashboard.gateway.blocks import Event


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[Any] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []


class _Asked(msgspec.Struct):
    path: str
    request: msgspec.Raw


class Said(msgspec.Struct):
    """One answer as the caller has it."""

    content: str = ""
    reasoning: str = ""
    calls: bool = False
    """Whether it called a tool: that a text does not tell."""
    ended: bool = False


_chunks: msgspec.json.Decoder[_Chunk] = msgspec.json.Decoder(_Chunk)
_asked: msgspec.json.Decoder[_Asked] = msgspec.json.Decoder(_Asked)


class Journal:
    """Of one stream. Reads every event that is sent on; one that breaks off half-way never is."""

    def __init__(self, path: str = "", body: bytes = b"") -> None:
        self.path = path
        self.body = body
        self.counts: list[int] = []
        """Chunks sent, by answer; one more number for what closes the stream."""
        self.begun = False
        """Whether anything was sent."""
        self._answers = 0
        self._origin = b""
        self._emitted: dict[int, list[int]] = {}
        self._cached: dict[int, int] = {}
        self._said: dict[int, Said] = {}

    @property
    def resumable(self) -> bool:
        return bool(self._origin)

    @property
    def progress(self) -> int:
        """Grows with every token that is known or sent."""
        return sum(self.counts) or sum(map(len, self._emitted.values()))

    def take(self, event: Event) -> None:
        """Raises ValueError or msgspec.DecodeError for what no head of ours writes."""
        for mark in event.marks:
            self._note(mark)
        if not event.lines:
            return
        self.begun = True
        if self._origin and (number := event.id):
            self.counts = [int(count) for count in number.split(b",")]
            self._answers = self._answers or len(self.counts)
            self._hear(event.data)

    def resumption(self) -> bytes:
        """The body of `POST /resume`."""
        answers = range(max([self._answers, *(index + 1 for index in self._emitted)]))
        said = [self._said.get(index, Said()) for index in answers]
        return msgspec.json.encode(
            {
                "path": self.path,
                "request": msgspec.Raw(self.body),
                "origin": msgspec.Raw(self._origin),
                "emitted": [self._emitted.get(index, []) for index in answers],
                "cached": [self._cached.get(index) for index in answers],
                "sent": [*self.counts, *[0] * (len(answers) - len(self.counts))],
                "texts": [_text(answer) for answer in said],
                "ended": [answer.ended for answer in said],
            }
        )

    def _note(self, mark: bytes) -> None:
        kind, rest = mark[2:3], mark[4:]
        if kind == b"j":
            self._origin, self._emitted, self._cached = rest, {}, {}
        elif kind == b"t":
            index, *tokens = map(int, rest.split())
            self._emitted.setdefault(index, []).extend(tokens)
        elif kind == b"c":
            index, count = map(int, rest.split())
            self._cached[index] = count
        elif kind == b"r":
            asked = _asked.decode(rest)
            self.path, self.body = asked.path, bytes(asked.request)

    def _hear(self, data: bytes) -> None:
        for choice in _chunks.decode(data).choices:
            said = self._said.setdefault(choice.index, Said())
            said.content += choice.text or ""
            if choice.delta is not None:
                said.content += choice.delta.content or ""
                said.reasoning += choice.delta.reasoning_content or ""
                said.calls = said.calls or bool(choice.delta.tool_calls)
            said.ended = said.ended or choice.finish_reason is not None


def _text(said: Said) -> dict[str, str] | None:
    return None if said.calls else {"content": said.content, "reasoning": said.reasoning}
