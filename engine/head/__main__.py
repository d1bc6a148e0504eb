"""Entry of a head process: `python -m engine.head`, with its ProcessSpec as the first line of
standard input. Standard input then stays open for as long as the head should live.
"""

import asyncio
import logging
import signal
import sys
import time

import msgspec
import uvicorn

from engine import logs
from engine.errors import ConfigError, EngineError
from engine.head.collector import collect_rarely
from engine.head.front import ListenError
from engine.head.process import run_head
from engine.protocol.launch import GIVEN_UP, decode_spec
from engine.rank.lifeline import follow_parent, pulse

_SPARE_SECONDS = 2.0
"""Who waits longer for its spec was kept ready to take a dead head's place."""

log = logging.getLogger("engine.head")


def main() -> int:
    try:
        logs.set_up(sys.stdout, "%(message)s")
    except ConfigError as error:
        print(error, flush=True)
        return GIVEN_UP
    follow_parent()
    pulse()
    collect_rarely()
    waits_since = time.monotonic()
    line = sys.stdin.buffer.readline()
    spare = time.monotonic() - waits_since > _SPARE_SECONDS
    if not line:
        return 0  # it was kept in case it were needed
    try:
        spec = decode_spec(line)
    except msgspec.MsgspecError as error:
        log.error("The launch spec on standard input is damaged: %s.", error)
        return GIVEN_UP
    if spec.role != "head":
        log.error("The launch spec on standard input is not a head's.")
        return GIVEN_UP
    logs.about(launch=spec.launch)
    logs.hide(spec.token)
    factory = uvicorn.Config(app="", loop="auto").get_loop_factory()
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(run_head(spec, again=spare))
    except EngineError as error:
        log.error("%s", error)
        return 1 if isinstance(error, ListenError) else GIVEN_UP
    finally:
        # It is ending; killed while it does, its exit code could not say that it failed.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
