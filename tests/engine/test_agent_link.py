"""The agent and its control plane over a real WebSocket: work goes on when the link does not."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from engine.agent import link
from engine.agent.inventory import take_inventory
from engine.agent.link import Backoff, socket_url
from engine.agent.node import NodeAgent
from engine.errors import ProtocolError
from engine.protocol.agent import AgentHello, Heartbeat, LogLines, Observed, Telemetry
from engine.protocol.launch import GIVEN_UP
from engine.protocol.stats import EngineStats, RankStats
from tests.engine.agents import SERVE, ScriptDriver, lives, spec_of, until
from tests.engine.control_peer import TOKEN, ControlPeer, end, told


class Node:
    """An agent in this process, dialling a peer."""

    def __init__(self, peer: ControlPeer, folder: Path, token: str = TOKEN) -> None:
        self.driver = ScriptDriver()
        inventory = take_inventory("127.0.0.1")
        self.agent = NodeAgent(peer.url, token, inventory, folder, {"script": self.driver})
        self.stop = asyncio.Event()
        self.running = asyncio.create_task(self.agent.run(self.stop))


@pytest.fixture
async def peer() -> AsyncIterator[ControlPeer]:
    peer = await ControlPeer().open()
    yield peer
    await peer.close()


@pytest.fixture
async def node(peer: ControlPeer, tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(peer, tmp_path)
    yield node
    node.stop.set()
    await asyncio.wait({node.running})


async def test_it_says_who_it_is_and_starts_what_is_asked(peer: ControlPeer, node: Node) -> None:
    await peer.ask(spec_of(SERVE), spec_of(SERVE, rank=1))
    first = await peer.sees("l1:rank0", "running")
    second = await peer.sees("l1:rank1", "running")
    assert first.pid != second.pid
    assert peer.observed.generation == 1
    hello = peer.heard[0]
    assert isinstance(hello, AgentHello)
    assert hello.inventory.address == "127.0.0.1"
    assert hello.inventory.cpu_count >= 1
    assert peer.paths[0] == "/ws/agent"
    await until(lambda: len(peer.all(Heartbeat)) > 3, "heartbeats")
    await until(lambda: any("serving" in m.lines for m in peer.all(LogLines)), "log lines")


async def test_an_exit_is_reported_with_reason_and_log(peer: ControlPeer, node: Node) -> None:
    await peer.ask(spec_of(f"print('no such model'); raise SystemExit({GIVEN_UP})"))
    state = await peer.sees("l1:rank0", "exited")
    assert str(state.reason) == "It exited with code 76: no such model"
    assert state.log_tail[-1] == "no such model"


async def test_engines_outlive_a_lost_link_and_are_reported_again(
    peer: ControlPeer, node: Node
) -> None:
    await peer.ask(spec_of(SERVE), spec_of(SERVE, rank=1))
    survivor = await peer.sees("l1:rank0", "running")
    victim = await peer.sees("l1:rank1", "running")
    assert survivor.pid is not None
    assert victim.pid is not None
    await peer.close()
    os.kill(victim.pid, signal.SIGKILL)
    await until(lambda: not lives(victim.pid or 0), "the death, while nobody listens")
    assert lives(survivor.pid)
    await peer.open()
    await until(lambda: (peer.process("l1:rank1") or victim).restarts == 1, "it to be back")
    back = await peer.sees("l1:rank1", "running")
    assert str(back.reason) == "It was killed by signal 9 (SIGKILL)."
    assert (back.restarts, back.exit_code) == (1, -9)
    again = await peer.sees("l1:rank0", "running")
    assert again.pid == survivor.pid
    assert isinstance(peer.heard[0], AgentHello)
    assert len(peer.all(Observed)[0].processes) == 2, "the first report is already whole"


async def test_readings_taken_while_the_link_was_down_arrive_later(
    peer: ControlPeer, node: Node
) -> None:
    await until(lambda: bool(peer.stored), "readings")
    await peer.close()
    await until(lambda: len(node.agent.telemetry.outbox) >= 2, "readings kept")
    await peer.open()
    await until(lambda: len(peer.all(Telemetry)) >= 3, "the kept readings")
    numbers = sorted(message.seq for message in peer.stored)
    assert numbers == list(range(len(numbers))), "each second exactly once"
    await until(lambda: len(node.agent.telemetry.outbox) == 0, "nothing to be kept any more")


async def test_readings_that_are_not_taken_are_sent_again(peer: ControlPeer, node: Node) -> None:
    peer.takes = False
    await until(lambda: len(peer.all(Telemetry)) >= 2, "readings")
    refused = {message.seq for message in peer.all(Telemetry)}
    assert not peer.stored
    peer.takes = True
    peer.cut()
    await until(lambda: refused <= {message.seq for message in peer.stored}, "them again")
    assert len({message.seq for message in peer.stored}) == len(peer.stored)


async def test_readings_are_told_on_the_panels_clock(peer: ControlPeer, tmp_path: Path) -> None:
    peer.ahead = 30.0
    node = Node(peer, tmp_path)
    await until(lambda: len(peer.stored) >= 2, "readings")
    assert all(29.0 < m.at - time.time() < 31.0 for m in peer.stored)
    skews = [
        sample.value
        for instant in told(peer.all(Telemetry))
        for sample in instant["node"]
        if sample.metric == "clock_skew_seconds"
    ]
    assert skews[-1] is not None
    assert abs(skews[-1] - 30.0) < 1.0
    node.stop.set()
    await asyncio.wait({node.running})


async def test_a_cut_connection_is_dialled_again(peer: ControlPeer, node: Node) -> None:
    await until(lambda: bool(peer.all(Observed)), "a first report")
    peer.cut()
    await until(lambda: peer.dials == 2 and bool(peer.all(Observed)), "a second link")


async def test_a_ready_head_is_reported_at_once_and_counters_are_telemetry(
    peer: ControlPeer, node: Node
) -> None:
    rank = RankStats(rank=0, phase="loading", connected=True, progress=0.5, step_seconds=0.01)
    loading = EngineStats(launch="l1", status="loading", ranks=[rank], kv_blocks_total=100)
    await peer.ask(spec_of(SERVE, role="head"))
    await peer.sees("l1:head", "starting")
    node.driver.answers["l1"] = loading
    await until(lambda: peer.observed.engines == [loading], "the loading head")
    ready = msgspec.structs.replace(
        loading, status="ready", kv_blocks_used=25, tokens_per_second=12.0
    )
    node.driver.answers["l1"] = ready
    await peer.sees("l1:head", "running")
    assert peer.observed.engines == [ready]

    def value(metric: str, subject: str) -> float | None:
        newest = told(peer.all(Telemetry))[-1:]
        samples = [s for instant in newest for s in instant.get(subject, [])]
        return next((s.value for s in samples if s.metric == metric), None)

    await until(lambda: value("kv_cache_usage_ratio", "launch:l1") == 0.25, "KV use")
    assert value("generation_tokens_per_second", "launch:l1") == 12.0
    assert value("step_seconds", "launch:l1:rank0") == 0.01
    await until(lambda: bool(value("process_memory_bytes", "launch:l1:head")), "its memory")
    (waiting,) = [
        sample
        for sample in told(peer.all(Telemetry))[-1]["launch:l1"]
        if sample.metric == "time_to_first_token_seconds"
    ]
    assert (waiting.value, waiting.kind) == (None, "unavailable")
    assert waiting.reason


async def test_stop_ends_the_engines_in_order(peer: ControlPeer, node: Node) -> None:
    await peer.ask(spec_of(SERVE))
    state = await peer.sees("l1:rank0", "running")
    node.stop.set()
    await asyncio.wait_for(node.running, 20)
    assert not lives(state.pid or 0)


async def test_a_wrong_token_is_said_clearly_and_tried_again_slowly(
    peer: ControlPeer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link, "REFUSED_DELAY", 0.05)
    caplog.set_level(logging.INFO, logger="engine.agent.link")
    node = Node(peer, tmp_path, token="another")
    await until(lambda: peer.dials >= 2, "another try")
    await end(node.running)
    assert "The server refused this node's token. Trying again in" in caplog.text
    assert "another" not in caplog.text
    assert not peer.heard


async def test_a_refused_version_is_said_with_the_servers_words(
    peer: ControlPeer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    peer.refusal = "This panel speaks version 2; update the agent."
    node = Node(peer, tmp_path)
    await until(lambda: peer.refusal in caplog.text, "the refusal in the log")
    await end(node.running)


def test_delays_grow_to_a_limit_and_start_over_after_success() -> None:
    backoff = Backoff()
    delays = [backoff.next() for _ in range(12)]
    assert delays[0] <= 0.2
    assert max(delays) <= 5.0
    assert min(delays[-3:]) >= 2.5
    backoff.reset()
    assert backoff.next() <= 0.2


def test_the_servers_address_becomes_a_socket_address() -> None:
    assert socket_url("http://box:8000") == "ws://box:8000/ws/agent"
    assert socket_url("https://panel.example/tandem/") == "wss://panel.example/tandem/ws/agent"
    with pytest.raises(ProtocolError, match="http://host:8000"):
        socket_url("box:8000")


async def test_a_link_that_is_lost_as_something_is_to_be_said_still_ends() -> None:
    """The wake-up and the cancellation come in the same turn of the loop."""

    class Silent:
        wake = asyncio.Event()

        def outgoing(self) -> list[object]:
            self.wake.clear()
            return []

    speaker = Silent()
    line = link.Link("http://127.0.0.1:1", TOKEN, take_inventory("127.0.0.1"), speaker)  # type: ignore[arg-type]  # it only speaks
    speaking = asyncio.create_task(line._speak(None))  # type: ignore[arg-type]  # it says nothing
    for _turn in range(3):
        await asyncio.sleep(0)
    speaker.wake.set()
    speaking.cancel()
    await asyncio.wait({speaking}, timeout=5)
    assert speaking.cancelled()
