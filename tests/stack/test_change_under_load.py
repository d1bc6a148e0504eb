"""Settings are changed while people ask: nobody is refused, and what is bad goes back by itself."""

import json
import shutil
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gguf
import psycopg
import pytest

from dashboard.catalogue import bundled_model_path
from tests.stack.conftest import Stack, wait_for

PROPOSE = """
from dashboard.audit import Actor
from dashboard.lifecycle import revisions
from dashboard.models import Deployment
deployment = Deployment.objects.select_related("model").get(name="smollm2")
revision = revisions.propose(deployment, {values}, {content}, actor=Actor("tests"))
revisions.apply(revision, Actor("tests"))
print("revision", revision.pk)
"""
STATE = """
select state, outcome from dashboard_revision where id = %s
"""
REST = """
select deployment.status,
    (select count(*) from dashboard_job where status in ('queued', 'running')),
    (select count(*) from dashboard_replica
        where status in ('starting', 'ready', 'recovering', 'draining'))
from dashboard_deployment deployment where name = 'smollm2'
"""
IMPORT = """
from pathlib import Path
from dashboard import catalogue
catalogue.import_model(Path({path!r}), {name!r}, {name!r})
"""


class Load:
    """Two people who ask the same over and over; every answer is written down."""

    def __init__(self, stack: Stack, key: str) -> None:
        self.stack, self.key = stack, key
        self.answers: list[tuple[int, str]] = []
        self.over = threading.Event()

    def ask(self, stream: bool) -> tuple[int, str]:
        body = {
            "model": "smollm2",
            "messages": [{"role": "user", "content": "Name three colours."}],
            "max_tokens": 16,
            "temperature": 0,
            "stream": stream,
        }
        request = urllib.request.Request(
            f"{self.stack.base_url}/v1/chat/completions",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                said = answer.read().decode()
        except OSError as error:
            return getattr(error, "code", 0), str(error)
        return 200, _text_of_stream(said) if stream else _text(json.loads(said))

    def go_on(self, stream: bool) -> None:
        while not self.over.is_set():
            self.answers.append(self.ask(stream))

    @property
    def failures(self) -> list[tuple[int, str]]:
        return [answer for answer in self.answers if answer[0] != 200]


def _text(body: Any) -> str:
    return str(body["choices"][0]["message"]["content"])


def _text_of_stream(said: str) -> str:
    lines = [line[6:] for line in said.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]", said[-300:]
    chunks = [json.loads(line) for line in lines[:-1]]
    return "".join(
        chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"]
    )


@contextmanager
def load(stack: Stack) -> Iterator[Load]:
    it = Load(stack, stack.api_key())
    threads = [threading.Thread(target=it.go_on, args=(n % 2 == 0,)) for n in range(2)]
    for thread in threads:
        thread.start()
    try:
        wait_for("first answers", lambda: len(it.answers) >= 2)
        yield it
    finally:
        it.over.set()
        for thread in threads:
            thread.join(130)


def change(
    stack: Stack, values: dict[str, Any], content: dict[str, Any] | None = None
) -> tuple[str, str]:
    """Propose and apply, and wait for the end: the revision's state and outcome."""
    said = stack.manage("shell", "-c", PROPOSE.format(values=values, content=content))
    pk = int(said.rpartition("revision ")[2].split()[0])

    def ended() -> bool:
        [(state, _outcome)] = stack.rows(STATE, pk)
        return bool(state != "applying" and stack.rows(REST) == [("ready", 0, 1)])

    wait_for("the end of the change", ended, 150, pause=0.5)
    [(state, outcome)] = stack.rows(STATE, pk)
    return state, outcome


def spoilt(path: Path, spoil: Callable[[bytearray, gguf.GGUFReader], None], stack: Stack) -> str:
    """The bundled model under another name, in a file that is bad in a way only use shows."""
    shutil.copy(bundled_model_path(), path)
    content = bytearray(path.read_bytes())
    spoil(content, gguf.GGUFReader(path))
    path.write_bytes(content)
    stack.manage("shell", "-c", IMPORT.format(path=str(path), name=path.stem))
    return path.stem


def mix_up(content: bytearray, reader: gguf.GGUFReader) -> None:
    """Every layer's gate takes the place of another layer's: numbers as sound as before."""
    gates = [t for t in reader.tensors if t.name.endswith("ffn_gate.weight")]
    ups = [t for t in reader.tensors if t.name.endswith("ffn_up.weight")]
    queries = [t for t in reader.tensors if t.name.endswith("attn_output.weight")]
    for tensors in (gates, ups, queries):
        whole = {t.n_bytes for t in tensors}
        assert len(whole) == 1
        pieces = [bytes(content[t.data_offset : t.data_offset + t.n_bytes]) for t in tensors]
        for tensor, piece in zip(tensors, reversed(pieces), strict=True):
            content[tensor.data_offset : tensor.data_offset + tensor.n_bytes] = piece


def mix_up_less(content: bytearray, reader: gguf.GGUFReader) -> None:
    """Another file, so that the catalogue takes it."""
    mix_up(content, reader)
    for tensor in reader.tensors[:6]:
        mix_up_halves(content, tensor.data_offset, tensor.n_bytes)


def mix_up_halves(content: bytearray, start: int, length: int) -> None:
    half = length // 2 // 20 * 20
    first = bytes(content[start : start + half])
    content[start : start + half] = content[start + half : start + 2 * half]
    content[start + half : start + 2 * half] = first


class Spoiler(threading.Thread):
    """Takes a tensor's name from the file at the moment when a launch is about to load it."""

    def __init__(self, stack: Stack, path: Path) -> None:
        super().__init__()
        self.path = path
        servers = json.loads((stack.state / "secrets" / "servers.json").read_text())
        self.database = servers["DATABASE_URL"]
        bad = bytearray(path.read_bytes())
        at = bad.find(b"blk.7.attn_output.weight")
        bad[at : at + 24] = b"blk.7.attn_outpux.weight"
        self.bad = path.with_suffix(".bad")
        self.bad.write_bytes(bad)

    def run(self) -> None:
        deadline = time.monotonic() + 90
        found = "SELECT 1 FROM dashboard_replica WHERE role = 'candidate' AND status = 'starting'"
        with psycopg.connect(self.database, autocommit=True) as database:
            while time.monotonic() < deadline:
                if database.execute(found).fetchone():
                    self.bad.replace(self.path)
                    return
                time.sleep(0.005)


@pytest.mark.timeout(400)
def test_nobody_is_refused_whatever_is_tried(stack: Stack, tmp_path: Path) -> None:
    garbage = spoilt(tmp_path / "mixed-up.gguf", mix_up, stack)
    broken = spoilt(tmp_path / "broken.gguf", mix_up_less, stack)
    with load(stack) as people:
        good = change(stack, {"kv_cache_tokens": 12288})
        answered = len(people.answers)
        nonsense = change(stack, {}, {"model": garbage})
        spoiler = Spoiler(stack, tmp_path / "broken.gguf")
        spoiler.start()
        crash = change(stack, {}, {"model": broken})
        spoiler.join(100)
        live = change(stack, {"max_waiting": 400})
        wait_for("answers after all that", lambda: len(people.answers) > answered + 4)
    assert good == ("current", "")
    assert nonsense[0] == "failed"
    assert "worse" in nonsense[1] or "noise" in nonsense[1]
    assert crash[0] == "failed"
    assert live == ("current", "")
    assert not people.failures, people.failures[:3]
    assert len({text for _status, text in people.answers}) == 1
    print(f"{len(people.answers)} answers; {nonsense[1]} {crash[1]}")
