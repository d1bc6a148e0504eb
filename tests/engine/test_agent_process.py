"""The agent as its own process: killed, its engines wait for the next; asked, they end with it."""

import asyncio
import contextlib
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.protocol.agent import Observed
from tests.engine.agents import SERVE, lives, spec_of, until
from tests.engine.control_peer import TOKEN, ControlPeer

AGENT = """
import os
import sys
import engine.agent.child
from engine.agent.__main__ import main
from tests.engine.agents import ScriptDriver

engine.agent.child.ORPHAN_SECONDS = float(os.environ["ORPHAN_SECONDS"])

class Faulty(ScriptDriver):
    name = "faulty"
    async def stats(self, http, spec):
        raise ZeroDivisionError("a mistake in a driver")

sys.exit(main(drivers={"script": ScriptDriver(), "faulty": Faulty()}))
"""


class AgentProcess:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.pid = process.pid

    @classmethod
    async def start(
        cls, *arguments: str, token: str | None = TOKEN, orphan: float = 60.0
    ) -> "AgentProcess":
        """`orphan`: how many seconds its engines outlive it."""
        environment = os.environ | {"ORPHAN_SECONDS": str(orphan)}
        environment.pop("TANDEM_NODE_TOKEN", None)
        if token is not None:
            environment["TANDEM_NODE_TOKEN"] = token
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", AGENT, *arguments, env=environment, stderr=asyncio.subprocess.PIPE
        )
        return cls(process)

    async def end(self) -> tuple[int, str]:
        """Exit code and what it said."""
        _, errors = await asyncio.wait_for(self.process.communicate(), 30)
        assert self.process.returncode is not None
        return self.process.returncode, errors.decode()


@pytest.fixture
async def peer() -> AsyncIterator[ControlPeer]:
    peer = await ControlPeer().open()
    yield peer
    await peer.close()


@pytest.fixture
async def agent(peer: ControlPeer, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    agent = await start(peer, tmp_path)
    yield agent
    with contextlib.suppress(ProcessLookupError):
        agent.process.terminate()
    await agent.end()


async def start(peer: ControlPeer, folder: Path, orphan: float = 60.0) -> AgentProcess:
    arguments = ("--server", peer.url, "--address", "127.0.0.2", "--state", str(folder))
    return await AgentProcess.start(*arguments, orphan=orphan)


async def test_after_a_kill_9_the_next_agent_goes_on_with_the_same_engines(
    peer: ControlPeer, agent: AgentProcess, tmp_path: Path
) -> None:
    await peer.ask(spec_of(SERVE), spec_of(SERVE, rank=1))
    await peer.sees("l1:rank0", "running")
    await peer.sees("l1:rank1", "running")
    pids = [state.pid or 0 for state in peer.observed.processes]
    os.kill(agent.pid, signal.SIGKILL)
    await agent.end()
    assert all(lives(pid) for pid in pids)
    dials = peer.dials
    second = await start(peer, tmp_path)
    await until(lambda: peer.dials > dials and bool(peer.all(Observed)), "the next agent's report")
    first_report = peer.all(Observed)[0]
    assert sorted(state.pid or 0 for state in first_report.processes) == sorted(pids)
    os.kill(second.pid, signal.SIGTERM)
    assert (await second.end())[0] == 0
    assert not any(lives(pid) for pid in pids)


async def test_kill_9_leaves_nothing_behind_for_long(peer: ControlPeer, tmp_path: Path) -> None:
    agent = await start(peer, tmp_path, orphan=1.0)
    await peer.ask(spec_of(SERVE))
    pid = (await peer.sees("l1:rank0", "running")).pid or 0
    os.kill(agent.pid, signal.SIGKILL)
    await agent.end()
    await until(lambda: not lives(pid), "the engine's end")
    await until(lambda: not list(tmp_path.glob("*.keeper")), "its keeper's end")


async def test_a_second_agent_with_the_same_state_folder_refuses(
    peer: ControlPeer, agent: AgentProcess, tmp_path: Path
) -> None:
    await until(lambda: bool(peer.heard), "the link")
    code, said = await (await start(peer, tmp_path)).end()
    assert code == 2
    assert f"Another agent works with the state folder {tmp_path}." in said
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_ends_in_order_when_asked(
    peer: ControlPeer, agent: AgentProcess, number: signal.Signals
) -> None:
    await peer.ask(spec_of(SERVE))
    engine = (await peer.sees("l1:rank0", "running")).pid or 0
    os.kill(agent.pid, number)
    code, said = await agent.end()
    assert code == 0
    assert "Traceback" not in said
    assert not lives(engine)


async def test_a_part_that_fails_takes_the_agent_down_loudly_but_not_its_engines(
    peer: ControlPeer, tmp_path: Path
) -> None:
    agent = await start(peer, tmp_path, orphan=1.0)
    await peer.ask(spec_of(SERVE), spec_of(SERVE, role="head", driver="faulty"))
    code, said = await agent.end()
    assert code == 1
    assert "The agent failed; its engines wait for another." in said
    assert "a mistake in a driver" in said
    await until(lambda: not list(tmp_path.glob("*.keeper")), "their end, since none comes")


async def test_the_token_is_not_in_the_command_line_nor_in_the_log(
    peer: ControlPeer, agent: AgentProcess
) -> None:
    await until(lambda: bool(peer.heard), "the link")
    with open(f"/proc/{agent.pid}/cmdline") as command:
        assert TOKEN not in command.read()
    os.kill(agent.pid, signal.SIGTERM)
    assert TOKEN not in (await agent.end())[1]


async def test_a_wrong_call_is_one_clear_line() -> None:
    for arguments, token, words in (
        (["--server", "http://127.0.0.1:1"], None, "This node has no token"),
        (["--server", "127.0.0.1:1"], TOKEN, "write it as http://host:8000"),
        (["--server", "http://127.0.0.1:1", "--token-file", "/nowhere"], None, "/nowhere"),
    ):
        code, said = await (await AgentProcess.start(*arguments, token=token)).end()
        assert code == 2
        assert words in said
        assert len(said.splitlines()) == 1
