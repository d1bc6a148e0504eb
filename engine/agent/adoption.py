"""Finds the engines that an agent before this one has left."""

import asyncio
import contextlib
import logging

import msgspec

from engine.agent.child import Child
from engine.agent.home import KEEPERS, Home
from engine.agent.note import decode_note
from engine.agent.process import EngineProcess
from engine.drivers.base import DriverError

log = logging.getLogger(__name__)

ANSWER_SECONDS = 2.0


async def find_left_behind(home: Home) -> list[EngineProcess]:
    """At most one for each key. What cannot be taken over is ended."""
    found: dict[str, EngineProcess] = {}
    for path in sorted(home.folder.glob(KEEPERS)):
        try:
            child = Child.knock(path)
        except OSError:  # Its keeper was killed, and its engine with it.
            path.unlink(missing_ok=True)
            continue
        process = await _take_over(child, home)
        if process is None or process.spec.key in found:
            child.kill()
            child.close()
            path.unlink(missing_ok=True)
            continue
        log.info("Found %s running as process %s.", process.spec.key, process.pid)
        found[process.spec.key] = process
    return list(found.values())


async def _take_over(child: Child, home: Home) -> EngineProcess | None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ANSWER_SECONDS):
            await child.came.wait()
    if child.pid is None:
        return None
    try:
        return EngineProcess.adopt(decode_note(child.note), child, home)
    except (msgspec.MsgspecError, DriverError) as error:
        log.warning("Process %s was started by another version: %s", child.pid, error)
        return None
