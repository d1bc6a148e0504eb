"""Tandem's own engine: `python -m engine.head` and `python -m engine.rank`."""

import signal
import sys
from collections.abc import Hashable, Mapping
from pathlib import Path

import aiohttp
import msgspec

import engine
from engine.drivers.base import Command, Named, NoAnswer
from engine.errors import gettext_noop as _
from engine.protocol.launch import ProcessSpec, encode_spec
from engine.protocol.stats import EngineStats

ANSWER_TIMEOUT = aiohttp.ClientTimeout(total=2.0)


class Held(msgspec.Struct, frozen=True):
    """What a head answers to `PUT /limits`."""

    batch_rows: int


class EmbeddedDriver:
    name = "embedded"
    stop_signal = signal.SIGTERM
    stop_seconds = 10.0
    stall_seconds = 30.0
    names: Mapping[str, Named] = {}

    def command(self, spec: ProcessSpec) -> Command:
        threads = str(spec.config.threads_per_rank)
        return Command(
            argv=[sys.executable, "-m", f"engine.{spec.role}"],
            environment={
                "OMP_NUM_THREADS": threads,
                "MKL_NUM_THREADS": threads,
                "PYTHONUNBUFFERED": "1",
                "TOKENIZERS_PARALLELISM": "false",
            },
            # `-m` looks in the working directory first, so the engine that starts is this one.
            directory=str(Path(engine.__file__).resolve().parents[1]),
            standard_input=encode_spec(spec) + b"\n",
        )

    async def ready(self, http: aiohttp.ClientSession, spec: ProcessSpec) -> bool:
        try:
            async with http.get(f"http://{spec.http}/health", timeout=ANSWER_TIMEOUT) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False

    async def stats(self, http: aiohttp.ClientSession, spec: ProcessSpec) -> EngineStats:
        headers = {"Authorization": f"Bearer {spec.token}"}
        url = f"http://{spec.http}/stats"
        try:
            async with http.get(url, headers=headers, timeout=ANSWER_TIMEOUT) as answer:
                if answer.status != 200:
                    raise NoAnswer(_("The head answers /stats with an error."))
                stats = msgspec.json.decode(await answer.read(), type=EngineStats)
        except TimeoutError as error:
            raise NoAnswer(_("The head took longer than 2 s to answer /stats.")) from error
        except (aiohttp.ClientError, OSError) as error:
            raise NoAnswer(_("The head does not answer.")) from error
        except msgspec.MsgspecError as error:
            raise NoAnswer(_("The head's /stats cannot be read.")) from error
        if stats.launch != spec.launch:
            raise NoAnswer(_("Another launch answers at the head's address."))
        return stats

    async def hold_batch(
        self, http: aiohttp.ClientSession, spec: ProcessSpec, rows: int | None
    ) -> int | None:
        headers = {"Authorization": f"Bearer {spec.token}"}
        url, body = f"http://{spec.http}/limits", {"batch_rows": rows}
        try:
            async with http.put(url, json=body, headers=headers, timeout=ANSWER_TIMEOUT) as answer:
                if answer.status != 200:
                    raise NoAnswer(_("The head refuses to be held to a batch size."))
                return msgspec.json.decode(await answer.read(), type=Held).batch_rows
        except TimeoutError as error:
            raise NoAnswer(_("The head took longer than 2 s to take its batch cap.")) from error
        except (aiohttp.ClientError, OSError) as error:
            raise NoAnswer(_("The head does not answer.")) from error
        except msgspec.MsgspecError as error:
            raise NoAnswer(_("The head's answer about its batch cap cannot be read.")) from error

    def progress(self, stats: EngineStats) -> Hashable:
        return (
            stats.steps,
            stats.finished + stats.aborted,
            tuple((rank.phase, rank.progress, rank.step) for rank in stats.ranks),
        )
