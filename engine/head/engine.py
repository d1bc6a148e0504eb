"""The head without its HTTP: a scheduler, its ranks, and the text of the answers."""

import asyncio
import logging
import secrets
import time
from collections.abc import Sequence

import msgspec

from engine.checkpoint import Checkpoint
from engine.core.prefix import namespace
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from engine.errors import ConfigError, EngineError, RankLost, RequestError, Said
from engine.errors import gettext_noop as _
from engine.head.answer import Answer, Generation
from engine.head.begun import Begun, replay
from engine.head.deadlines import Deadlines
from engine.head.door import Door
from engine.head.epoch import Epoch
from engine.head.guard import MemoryGuard
from engine.head.meter import Meter
from engine.head.probe import Probe
from engine.head.readers import Readers
from engine.head.recovery import Recovery
from engine.head.report import engine_stats
from engine.head.wanted import Wanted as Wanted
from engine.protocol.launch import Address, ProcessSpec
from engine.protocol.stats import EngineStats, HeadStatus
from engine.protocol.steps import Shutdown
from engine.shards import check_plan
from engine.text.chat import ChatEncoder
from engine.text.tokenizer import TextTokenizer

log = logging.getLogger(__name__)

SUSPECT = 3
"""Faults in a row during one request's computation after which it may be their cause."""


class HeadEngine:
    """Start with `listen`, then `run`; ask with `submit` from the same event loop."""

    def __init__(
        self,
        spec: ProcessSpec,
        checkpoint: Checkpoint,
        deadlines: Deadlines | None = None,
        *,
        again: bool = False,
    ) -> None:
        """`again`: it takes the place of a head that died, and callers may be waiting.

        Raises ConfigError or CheckpointError when this model cannot be served like this.
        """
        config, model = spec.config, checkpoint.config
        check_plan(model, config.plan)
        longest = config.max_model_len or 0
        if longest > model.context_length:
            raise ConfigError(
                _(
                    "max_model_len (%(max_model_len)s) is more than this model's context of "
                    "%(context_length)s tokens."
                ),
                max_model_len=longest,
                context_length=model.context_length,
            )
        self.spec = spec
        self.tokenizer = TextTokenizer(checkpoint.tokenizer)
        self.chat = ChatEncoder(self.tokenizer)
        self.scheduler = Scheduler(config, model.context_length)
        self.meter = Meter()
        self.readers = Readers(self.scheduler, self.meter)
        self._deadlines = deadlines or Deadlines()
        self.recovery = Recovery(self._deadlines, again=again)
        self.probe = Probe(
            self._queue,
            self.scheduler,
            self.readers,
            self.chat,
            self.tokenizer,
            self._deadlines,
        )
        self.ready = asyncio.Event()
        """Set while requests are computed."""
        self._guard = MemoryGuard(spec.memory_floor)
        self._end = Said()
        """Why the launch is over; empty while it is not."""
        self._serial = 0
        self._door = Door(spec, self._deadlines.greeting)
        self._epoch = self._new_epoch()

    @property
    def status(self) -> HeadStatus:
        if self._end:
            return "failed"
        if self.ready.is_set():
            return "ready"
        if self.probe.rehearsed:
            return "recovering"
        return "loading" if self._epoch.group.complete else "starting"

    @property
    def detail(self) -> Said:
        """A sentence; empty when ready."""
        if self._end or self.ready.is_set():
            return self._end
        progress = self._epoch.group.describe()
        if not self.recovery.fault:
            return progress
        return self.recovery.describe(len(self.readers), progress)

    @property
    def capacity(self) -> int:
        """Most tokens of prompt and answer together."""
        return self.scheduler.capacity

    async def listen(self) -> Address:
        """Open the control port for the ranks; raises OSError when it is taken."""
        return await self._door.open()

    async def run(self) -> None:
        """Epoch after epoch. Ends only by raising the EngineError for which it gave up."""
        try:
            while True:
                try:
                    await self._epoch.live()
                except EngineError as error:
                    self._interrupt(error)
        except EngineError as error:
            self.finish(error.said)
            raise

    def finish(self, reason: Said) -> None:
        """No more requests; the open ones end with the first reason given."""
        self._end = self._end or reason
        self.probe.stop()
        self.readers.deliver(self.scheduler.end_all("error", str(self._end)))

    async def close(self) -> None:
        """End the ranks."""
        self._door.close()
        self._epoch.group.broadcast(Shutdown())
        self._epoch.group.close()

    def submit(
        self, prompts: list[list[int]], wanted: Wanted, begun: Sequence[Begun] = ()
    ) -> Generation:
        """Queue `wanted.n` requests a prompt, those of one prompt in a row. Those that have `begun`
        elsewhere, one for each request, go on from there. They wait while the engine recovers.

        Raises RequestError when one of them is refused; then none is queued.
        """
        if self.status not in ("ready", "recovering"):
            raise RequestError(f"The model is not ready: {self.detail}", status=503)
        self._guard.check()
        generation = self._queue(prompts, wanted, begun)
        if self.status == "recovering":
            self.readers.pause()
        return generation

    def abort(self, generation: Generation) -> None:
        """End what is still open of a generation nobody reads any more."""
        self.readers.drop(generation)
        self._epoch.wake()

    def hold_batch(self, rows: int | None) -> None:
        """At most so many answers advance in one step, from the next one on; None lifts it."""
        self.scheduler.cap.hold(rows)
        self._epoch.wake()

    def set_limits(
        self,
        target_itl: float | msgspec.UnsetType | None,
        max_waiting: int | msgspec.UnsetType,
    ) -> None:
        """From the next step and the next request on; UNSET leaves it as it is."""
        if target_itl is not msgspec.UNSET:
            self.scheduler.cap.aim(target_itl)
        if max_waiting is not msgspec.UNSET:
            self.scheduler.let_wait(max_waiting)
        self._epoch.wake()

    def stats(self) -> EngineStats:
        return engine_stats(self, self._epoch.group.peers)

    def _new_epoch(self) -> Epoch:
        epoch = Epoch(
            self.scheduler,
            self.readers,
            self.meter,
            self.probe,
            self.recovery,
            self.ready,
            self._deadlines,
        )
        self._door.group = epoch.group
        return epoch

    def _interrupt(self, error: EngineError) -> None:
        """An epoch ended: everything open waits for the next one. Raises EngineError when there
        will be none."""
        self.ready.clear()
        self.probe.stop()
        if not (self.probe.rehearsed or _may_pass(error)):
            raise error
        self.recovery.next_epoch(error, self.scheduler.counters.generated_tokens)
        events = self.scheduler.interrupted(SUSPECT)
        events += self.scheduler.restart(self.recovery.epoch, self.scheduler.pool.size)
        self.readers.deliver(events)
        self.readers.pause()
        self._epoch = self._new_epoch()
        log.warning("%s Epoch %d begins.", error, self.recovery.epoch)

    def _queue(
        self, prompts: list[list[int]], wanted: Wanted, begun: Sequence[Begun] = ()
    ) -> Generation:
        requests = self._requests(prompts, wanted)
        generation = Generation(requests, wanted.n)
        answers = [
            Answer(index, self.tokenizer, wanted.stop, wanted.shown)
            for index in range(len(requests))
        ]
        now = time.monotonic()
        for request, answer, so_far in zip(requests, answers, begun, strict=False):
            for delta in replay(request, answer, so_far, now):
                generation.put(delta)
        self.scheduler.add_all([request for request in requests if request.finish is None])
        for request, answer in zip(requests, answers, strict=True):
            if request.finish is None:
                self.readers.add(request, answer, generation)
        self._epoch.wake()
        return generation

    def _requests(self, prompts: list[list[int]], wanted: Wanted) -> list[Request]:
        seed = wanted.seed if wanted.seed is not None else secrets.randbits(63)
        root = namespace(self.spec.served_name, self.spec.revision, wanted.salt)
        return [
            self._request(prompt, wanted, (seed + number) % 2**63, root)
            for prompt in prompts
            for number in range(wanted.n)
        ]

    def _request(self, prompt: list[int], wanted: Wanted, seed: int, root: bytes) -> Request:
        room = self.capacity - len(prompt)
        if room < 1:
            raise RequestError(
                f"This model's context holds {self.capacity} tokens, the prompt has "
                f"{len(prompt)}; leave room for at least one token of an answer.",
                code="context_length_exceeded",
            )
        self._serial += 1
        scored = wanted.prompt_logprobs is not None
        return Request(
            id=f"{self.spec.launch}-{self._serial}",
            prompt=prompt,
            max_tokens=room if wanted.max_tokens is None else wanted.max_tokens,
            sampling=wanted.sampling(seed, self.tokenizer.stop_ids),
            stop_tokens=wanted.stop_tokens(self.tokenizer.stop_ids),
            min_tokens=wanted.min_tokens,
            namespace=root,
            share_prefix=not scored,
            score_prompt=scored,
            priority=wanted.priority,
            arrived_at=time.monotonic(),
        )


def _may_pass(error: EngineError) -> bool:
    """Whether a fault before the first answer is worth another attempt: a rank that was lost or
    fell silent is, but not one that says why it cannot work."""
    return isinstance(error, RankLost)
