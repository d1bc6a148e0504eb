"""A head's life: listen, serve, and end for one reason that it tells."""

import asyncio
import logging
import os
import signal
import sys
import threading
from typing import Any

from engine.checkpoint import open_checkpoint
from engine.errors import EngineError, said
from engine.errors import gettext_noop as _
from engine.head.api.app import build_app
from engine.head.deadlines import Deadlines
from engine.head.engine import HeadEngine
from engine.head.front import HttpFront, cannot_listen
from engine.protocol.launch import GIVEN_UP, ProcessSpec

log = logging.getLogger(__name__)


async def run_head(
    spec: ProcessSpec, deadlines: Deadlines | None = None, *, again: bool = False
) -> int:
    """Serve until told to stop (0), or until the launch is given up (GIVEN_UP).

    `again`: in the place of a head that died.
    """
    stopping = _stop_requests()
    engine = HeadEngine(spec, open_checkpoint(spec.model_path), deadlines, again=again)
    try:
        await engine.listen()
    except OSError as error:
        raise cannot_listen(spec.control, error) from error
    front = HttpFront(build_app(engine), spec.http)
    front.start()
    log.info("The head listens on %s for requests and on %s for ranks.", spec.http, spec.control)
    work = asyncio.create_task(engine.run())
    try:
        either: list[asyncio.Future[Any]] = [work, stopping]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return _explain(work)
        log.info("Stopping: %s", stopping.result())
        return 0
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        # The ranks hear of it last: their end, reported first, would hide the reason for this one.
        engine.finish(said(_("The engine is being stopped.")))
        await front.stop()
        await engine.close()


def _explain(work: asyncio.Task[None]) -> int:
    """Tell why the engine ended; an unforeseen error travels on to the log with its trace."""
    error = work.exception()
    if isinstance(error, EngineError):
        log.error("%s", error)
        return GIVEN_UP
    if error is not None:
        raise error
    return 1


def _stop_requests() -> "asyncio.Future[str]":
    """Resolves with a reason on SIGTERM, SIGINT, or when standard input closes."""
    loop = asyncio.get_running_loop()
    stopping: asyncio.Future[str] = loop.create_future()

    def stop(reason: str) -> None:
        if not stopping.done():
            stopping.set_result(reason)

    def until_stdin_closes() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            pass
        loop.call_soon_threadsafe(stop, "whoever started this head is gone.")

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, f"asked by {number.name}.")
    threading.Thread(target=until_stdin_closes, name="lifeline", daemon=True).start()
    return stopping
