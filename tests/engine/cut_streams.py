"""Streams with a journal, cut anywhere and taken up again."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.engine.head_world import MODEL, HeadWorld

Json = dict[str, Any]
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
ASK: Json = {"messages": [{"role": "user", "content": "Say something"}], "max_tokens": 20}


@dataclass
class Journal:
    """What a gateway knows after the events it was given."""

    origin: Json = field(default_factory=dict)
    emitted: dict[int, list[int]] = field(default_factory=dict)
    cached: dict[int, int] = field(default_factory=dict)
    sent: list[int] = field(default_factory=list)

    def take(self, event: str) -> None:
        for line in event.split("\n"):
            kind, _, rest = line.partition(" ")
            if line.startswith(": j "):
                self.origin, self.emitted = json.loads(line[4:]), {}
            elif line.startswith(": t "):
                index, *tokens = map(int, line[4:].split())
                self.emitted.setdefault(index, []).extend(tokens)
            elif line.startswith(": c "):
                index, count = map(int, line[4:].split())
                self.cached[index] = count
            elif kind == "id:":
                self.sent = [int(count) for count in rest.split(",")]

    def resumption(self, path: str, request: Json) -> Json:
        answers = range(len(self.sent))
        return {
            "path": path,
            "request": request,
            "origin": self.origin,
            "emitted": [self.emitted.get(index, []) for index in answers],
            "cached": [self.cached.get(index) for index in answers],
            "sent": self.sent,
        }


def request(path: str, body: Json) -> Json:
    base = ASK if path == CHAT else {}
    return {"model": MODEL, "stream": True} | base | body


def journaled(stream: str) -> dict[str, str]:
    return {"X-Tandem-Journal": "1", "X-Request-Id": stream}


async def events_of(
    world: HeadWorld, path: str, body: Json, stream: str, method: str = "POST"
) -> list[str]:
    """Every event, with the lines before its data."""
    payload = body if method == "POST" else None
    headers = journaled(stream)
    async with world.http.request(method, path, json=payload, headers=headers) as answer:
        text = await answer.text()
        assert answer.status == 200, text
    events = text.split("\n\n")
    assert events.pop() == ""
    return events


def visible(events: list[str]) -> list[str]:
    """Ids and data, without what only a gateway reads."""
    kept = [[line for line in event.split("\n") if line[:1] != ":"] for event in events]
    return ["\n".join(lines) for lines in kept]


def datas(events: list[str], index: int | None = None) -> list[str]:
    """The data of one answer, or of the closing ones for None."""
    found = []
    for event in events:
        data = event.partition("data: ")[2]
        choices = json.loads(data)["choices"] if data != "[DONE]" else []
        if (choices[0]["index"] if choices else None) == index:
            found.append(data)
    return found


async def check_every_cut(world: HeadWorld, path: str = CHAT, **body: Any) -> list[str]:
    """The stream cut behind each of its events goes on as if nothing had happened."""
    asked = request(path, body)
    whole = await events_of(world, path, asked, "whole")
    journal = Journal()
    for cut, event in enumerate(whole[:-1], 1):
        journal.take(event)
        resumption = journal.resumption(path, asked)
        rest = await events_of(world, "/resume", resumption, f"cut {cut}")
        glued = whole[:cut] + rest
        for index in [*range(asked.get("n") or 1), None]:
            assert datas(glued, index) == datas(whole, index), f"cut behind event {cut}"
        if (asked.get("n") or 1) == 1:
            assert visible(glued) == visible(whole), f"cut behind event {cut}"
    return whole
