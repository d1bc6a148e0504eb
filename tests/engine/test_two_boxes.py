"""A replica works over two boxes that share a cable and nothing else, and notices its loss."""

import contextlib
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import msgspec
import pytest

from engine.checkpoint import open_checkpoint
from engine.config import EngineConfig, ParallelPlan, Transport
from engine.protocol.launch import EPOCH_OVER, Address, ProcessSpec
from engine.text.detokenizer import Detokenizer
from engine.text.tokenizer import TextTokenizer
from tests.engine.boxes import Box, two_boxes, why_not
from tests.engine.local_runner import LocalRunner
from tests.engine.tiny_model import HIDDEN, write_tiny_model

REASON = why_not()
pytestmark = pytest.mark.skipif(
    REASON is not None and not os.environ.get("CI"), reason=f"NO TWO BOXES: {REASON}"
)
TOKEN = "launch-token"
PROMPT = [5, 80, 33, 120, 7, 61]
PATIENCE = 60.0
ASK = {
    "model": "tiny",
    "prompt": PROMPT,
    "max_tokens": 24,
    "temperature": 0,
    "ignore_eos": True,
}


class Replica:
    """Head and rank 0 in one box, rank 1 in the other."""

    def __init__(self, boxes: tuple[Box, Box], model: Path, transport: Transport) -> None:
        self.boxes = boxes
        here = boxes[0].address
        self.spec = ProcessSpec(
            launch="l1",
            token=TOKEN,
            role="head",
            model_path=str(model),
            served_name="tiny",
            config=EngineConfig(plan=ParallelPlan(tp=2), kv_cache_tokens=2048, transport=transport),
            host=here,
            http=Address(here, 8100),
            control=Address(here, 8101),
        )
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, logs: Path) -> None:
        head = self.boxes[0].start("engine.head", self.spec, logs / "head.log")
        self.processes.append(head)
        self.start_ranks(logs)

    def start_ranks(self, logs: Path) -> None:
        for rank, box in enumerate(self.boxes):
            spec = msgspec.structs.replace(self.spec, role="rank", rank=rank, host=box.address)
            self.processes.append(box.start("engine.rank", spec, logs / f"rank{rank}.log"))

    def ask(self, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """Asked from the head's own box; the reply to a request that failed counts as well."""
        request = urllib.request.Request(
            f"http://{self.spec.http}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {TOKEN}"},
        )

        def send() -> tuple[int, dict[str, Any]]:
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    return answer.status, json.load(answer)
            except HTTPError as refusal:
                with refusal:
                    return refusal.code, json.load(refusal)

        return self.boxes[0].inside(send)

    def wait_for(self, wanted: str) -> dict[str, Any]:
        """What /health says once the head's status is `wanted`."""
        deadline = time.monotonic() + PATIENCE
        while True:
            assert time.monotonic() < deadline, f"the replica was not {wanted} in time"
            assert self.processes[0].poll() is None, "the head ended"
            with contextlib.suppress(URLError):
                _status, body = self.ask("/health")
                if body["status"] == wanted:
                    return body

    def restart_ranks(self, logs: Path) -> None:
        """As soon as each has left by itself, as its agent would."""
        for process in self.processes[1:]:
            assert process.wait(timeout=PATIENCE) == EPOCH_OVER
        self.start_ranks(logs)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate(timeout=20)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


@contextmanager
def replica(model: Path, transport: Transport, logs: Path) -> Iterator[Replica]:
    assert REASON is None, REASON
    with two_boxes() as boxes:
        started = Replica(boxes, model, transport)
        try:
            started.start(logs)
            started.wait_for("ready")
            yield started
        finally:
            started.stop()


def expected_text(model: Path, count: int) -> str:
    """What the whole model says in one process."""
    alone = LocalRunner(model, EngineConfig(kv_cache_tokens=2048))
    ids = alone.generate([PROMPT], count)[0]
    return Detokenizer(TextTokenizer(open_checkpoint(model).tokenizer)).feed(ids)


@pytest.mark.parametrize(
    ("transport", "carrier"), [("auto", "tcp"), ("tcp", "tcp"), ("gloo", "gloo")]
)
def test_two_boxes_compute_what_one_does(
    model: Path, tmp_path: Path, transport: Transport, carrier: str
) -> None:
    with replica(model, transport, tmp_path) as two:
        before = two.boxes[1].received()
        status, answer = two.ask("/v1/completions", ASK)
        assert status == 200, answer
        assert two.boxes[1].received() - before > 24 * HIDDEN * 4, "nothing crossed the cable"
        _status, stats = two.ask("/stats")
    assert answer["choices"][0]["text"] == expected_text(model, 24)
    assert {rank["transport"] for rank in stats["ranks"]} == {carrier}


def test_an_answer_goes_on_when_the_cable_is_plugged_in_again(model: Path, tmp_path: Path) -> None:
    with replica(model, "tcp", tmp_path) as two, ThreadPoolExecutor(1) as asking:
        two.boxes[1].pull_cable()
        asked = asking.submit(two.ask, "/v1/completions", ASK)
        health = two.wait_for("recovering")
        assert health["detail"].startswith("Rank 1 stopped answering ")
        two.boxes[1].plug_cable()
        two.restart_ranks(tmp_path)
        status, answer = asked.result(timeout=PATIENCE)
    assert status == 200, answer
    assert answer["choices"][0]["text"] == expected_text(model, 24)
