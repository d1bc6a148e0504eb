"""A rank process answers pings, says why it fails, and never outlives those it depends on."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest
from torch.distributed import DistNetworkError

from engine.config import EngineConfig, ParallelPlan
from engine.protocol.launch import EPOCH_OVER, GIVEN_UP, ProcessSpec
from engine.protocol.steps import StepDone
from engine.rank.process import run_rank
from tests.engine.head_world import make_spec
from tests.engine.rank_fleet import RankFailed, RankFleet, RankLink
from tests.engine.tiny_model import write_tiny_model

PROMPT = [5, 80, 33, 120, 7, 61]
TWO = EngineConfig(plan=ParallelPlan(tp=2), kv_cache_tokens=512)
ONE = EngineConfig(kv_cache_tokens=512)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture
def pair(model: Path, tmp_path: Path) -> Iterator[RankFleet]:
    with RankFleet(model, TWO, tmp_path) as fleet:
        yield fleet


@pytest.fixture
def single(model: Path, tmp_path: Path) -> Iterator[RankFleet]:
    with RankFleet(model, ONE, tmp_path) as fleet:
        yield fleet


def ended(fleet: RankFleet, rank: int) -> int:
    return fleet.processes[rank].wait(timeout=10)


def test_a_pair_reports_its_shares_and_its_progress(pair: RankFleet) -> None:
    assert [ready.kv_heads for ready in pair.ready] == [2, 1]
    assert {ready.transport for ready in pair.ready} == {"shm"}
    assert all(ready.kv_bytes > 0 and ready.weight_bytes > 0 for ready in pair.ready)
    for link in pair.links:
        fractions = [p.fraction for p in link.progress if p.fraction is not None]
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1.0
    assert "is ready after" in pair.log(0)


def test_a_rank_answers_pings_between_steps(pair: RankFleet) -> None:
    assert [link.ping().n for link in pair.links] == [-1, -1]
    pair.generate([PROMPT], 3)
    pongs = [link.ping() for link in pair.links]
    assert [(pong.phase, pong.n) for pong in pongs] == [("idle", 2), ("idle", 2)]


def test_a_rank_that_waits_for_its_peer_still_answers_pings(pair: RankFleet) -> None:
    stream = pair.open(PROMPT)
    step = pair.make_step([pair.row(stream, len(PROMPT))], [stream])
    pair.links[0].send(step)
    deadline = time.monotonic() + 10
    while (pong := pair.links[0].ping()).phase != "step":
        assert time.monotonic() < deadline
    assert pong.n == 0


def test_disagreement_fails_before_any_collective(pair: RankFleet) -> None:
    stream = pair.open(PROMPT)
    step = pair.make_step([pair.row(stream, len(PROMPT))], [stream])
    pair.links[0].send(msgspec.structs.replace(step, digest=b"wrong..."))
    with pytest.raises(RankFailed, match="differ from the head's"):
        pair.links[0].receive(StepDone, 10)
    assert ended(pair, 0) == 1


def test_a_lost_peer_fails_the_step_instead_of_hanging(pair: RankFleet) -> None:
    pair.processes[1].kill()
    ended(pair, 1)
    stream = pair.open(PROMPT)
    step = pair.make_step([pair.row(stream, len(PROMPT))], [stream])
    pair.links[0].send(step)
    with pytest.raises(RankFailed, match="connection to peer 1"):
        pair.links[0].receive(StepDone, 10)
    assert ended(pair, 0) == EPOCH_OVER, "it is not to blame"


def test_a_rank_ends_with_its_head(single: RankFleet) -> None:
    single.links[0].sock.close()
    assert ended(single, 0) == EPOCH_OVER
    assert "head closed the connection" in single.log(0)
    single.links.clear()


def test_a_rank_ends_when_standard_input_closes(single: RankFleet) -> None:
    stdin = single.processes[0].stdin
    assert stdin is not None
    stdin.close()
    assert ended(single, 0) == 0


def test_sigterm_ends_a_rank_at_once(single: RankFleet) -> None:
    os.kill(single.processes[0].pid, signal.SIGTERM)
    assert ended(single, 0) == 0
    assert "Stopped by SIGTERM" in single.log(0)


def test_the_token_is_never_in_the_log(single: RankFleet) -> None:
    assert single.token not in single.log(0)


def test_a_bad_checkpoint_is_told_to_the_head(model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(model.read_bytes()[:-500])
    with (
        pytest.raises(RankFailed, match=r"broken\.gguf is truncated"),
        RankFleet(broken, ONE, tmp_path),
    ):
        pass


def test_a_damaged_spec_is_one_clear_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "engine.rank"],
        input=b"{}\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == GIVEN_UP
    assert b"launch spec on standard input is damaged" in done.stdout
    assert not done.stderr


@pytest.mark.parametrize("module", ["engine.rank", "engine.head"])
def test_a_spare_has_a_pulse_and_leaves_quietly_when_it_is_not_needed(module: str) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as pulse:
        spare = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[writer],
            env=os.environ | {"TANDEM_PULSE_FD": str(writer), "OMP_NUM_THREADS": "1"},
        )
        os.close(writer)
        assert pulse.read(1) == b"."
        output, _ = spare.communicate(timeout=60)
    assert (spare.returncode, output) == (0, b"")


def test_a_rank_that_was_not_let_in_yet_tries_again(model: Path, tmp_path: Path) -> None:
    """Its head is starting anew as well, or has to notice first that the epoch is over."""

    class Shy(RankFleet):
        def _accept(self, listener: socket.socket) -> list[RankLink]:
            stranger, _ = listener.accept()
            stranger.close()
            return super()._accept(listener)

    with Shy(model, ONE, tmp_path) as fleet:
        assert fleet.generate([PROMPT], 2)


def test_the_pulse_says_when_a_rank_is_at_work(model: Path, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    fleet = RankFleet(model, ONE, tmp_path)
    fleet.pulse = writer
    with os.fdopen(reader, "rb", buffering=0) as pulse, fleet:
        os.close(writer)
        while (beat := pulse.read(1)) == b".":
            continue
        assert beat == b"!"
        assert fleet.ready


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BrokenPipeError(32, "Broken pipe"), EPOCH_OVER),
        (ConnectionResetError(104, "Connection reset by peer"), EPOCH_OVER),
        (TimeoutError(110, "Connection timed out"), EPOCH_OVER),
        (DistNetworkError("failed to recv, got 0 bytes"), EPOCH_OVER),
        (OSError(28, "No space left on device"), 1),
        (RuntimeError("not enough memory"), 1),
    ],
)
def test_a_rank_whose_head_or_peer_has_gone_is_not_to_blame(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_spec: ProcessSpec) -> NoReturn:
        raise error

    monkeypatch.setattr("engine.rank.process.reach_head", gone)
    assert run_rank(make_spec()) == code
