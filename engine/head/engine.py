"""The head without its HTTP: a scheduler, its ranks, and the text of the answers."""

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Sequence

from engine.checkpoint import Checkpoint
from engine.core.counters import Counters
from engine.core.prefix import namespace
from engine.core.request import Event, Request
from engine.core.scheduler import Scheduler
from engine.errors import ConfigError, EngineError, RankError, RequestError, Said
from engine.errors import gettext_noop as _
from engine.head.answer import Answer, Generation
from engine.head.begun import Begun, replay
from engine.head.deadlines import Deadlines
from engine.head.group import RankGroup
from engine.head.meter import Meter
from engine.head.peer import RankPeer
from engine.head.rehearsal import rehearsal_answer, rehearsal_prompt
from engine.head.wanted import Wanted as Wanted
from engine.head.watchdog import Watchdog
from engine.protocol.launch import Address, ProcessSpec
from engine.protocol.stats import EngineStats, HeadStatus
from engine.protocol.steps import Result, StepDone
from engine.shards import check_plan
from engine.text.chat import ChatEncoder
from engine.text.tokenizer import TextTokenizer

log = logging.getLogger(__name__)

EPOCH = 0
"""A launch has one epoch: a fault ends it, and the next launch has its own token."""


class HeadEngine:
    """Start with `listen`, then `run`; ask with `submit` from the same event loop."""

    def __init__(
        self, spec: ProcessSpec, checkpoint: Checkpoint, deadlines: Deadlines | None = None
    ) -> None:
        """Raises ConfigError or CheckpointError when this model cannot be served like this."""
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
        self.scheduler = Scheduler(config, model.context_length, epoch=EPOCH)
        self.meter = Meter()
        self.ready = asyncio.Event()
        self._end = Said()
        """Why the launch is over; empty while it is not."""
        self._deadlines = deadlines or Deadlines()
        self._answers: dict[str, tuple[Answer, Generation]] = {}
        self._results: deque[Result] = deque()
        self._wake = asyncio.Event()
        self._serial = 0
        self._group = RankGroup(spec, self._deadlines, self._finished)
        self._watchdog = Watchdog(self._group, self._deadlines)

    @property
    def status(self) -> HeadStatus:
        if self._end:
            return "failed"
        if self.ready.is_set():
            return "ready"
        return "loading" if self._group.complete else "starting"

    @property
    def detail(self) -> Said:
        """A sentence; empty when ready."""
        return self._end or (Said() if self.ready.is_set() else self._group.describe())

    @property
    def capacity(self) -> int:
        """Most tokens of prompt and answer together."""
        return self.scheduler.capacity

    async def listen(self) -> Address:
        """Open the control port for the ranks; raises OSError when it is taken."""
        return await self._group.listen()

    async def run(self) -> None:
        """Assemble the ranks, then serve. Ends only by raising the EngineError that ended it."""
        work = [
            asyncio.create_task(self._serve(), name="serve"),
            asyncio.create_task(self._watchdog.run(), name="watchdog"),
            asyncio.create_task(self._group.watch(), name="faults"),
        ]
        try:
            done, _pending = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
        except EngineError as error:
            self.finish(error.said)
            raise
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    def finish(self, reason: Said) -> None:
        """No more requests; the open ones end with the first reason given."""
        self._end = self._end or reason
        self._deliver(self.scheduler.end_all("error", str(self._end)))

    async def close(self) -> None:
        """End the ranks."""
        await self._group.close()

    def submit(
        self, prompts: list[list[int]], wanted: Wanted, begun: Sequence[Begun] = ()
    ) -> Generation:
        """Queue `wanted.n` requests a prompt, those of one prompt in a row. Those that have `begun`
        elsewhere, one for each request, go on from there.

        Raises RequestError when one of them is refused; then none is queued.
        """
        if self.status != "ready":
            raise RequestError(f"The model is not ready: {self.detail}", status=503)
        return self._queue(prompts, wanted, begun)

    def abort(self, generation: Generation) -> None:
        """End what is still open of a generation nobody reads any more."""
        for request in generation.requests:
            if self._answers.pop(request.id, None) is not None:
                self.scheduler.end(request.id, "abort")
        self._wake.set()

    def stats(self) -> EngineStats:
        scheduler, counters, pool = self.scheduler, self.scheduler.counters, self.scheduler.pool
        busy = scheduler.running > 0
        return EngineStats(
            launch=self.spec.launch,
            status=self.status,
            detail=self.detail,
            ranks=[peer.stats() for peer in self._group.peers],
            running=scheduler.running,
            waiting=scheduler.waiting,
            batch_cap=scheduler.cap.rows,
            steps=counters.steps,
            prompt_tokens=counters.prompt_tokens,
            generated_tokens=counters.generated_tokens,
            cached_tokens=counters.cached_tokens,
            preemptions=counters.preemptions,
            finished=counters.finished,
            aborted=counters.aborted,
            kv_blocks_total=pool.size,
            kv_blocks_used=pool.used,
            kv_blocks_cached=pool.cached,
            ttft_seconds=self.meter.ttft.median(),
            itl_seconds=self.meter.itl.median(),
            tokens_per_second=self.meter.tokens.total() if busy else None,
        )

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
                self._answers[request.id] = (answer, generation)
        self._wake.set()
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

    async def _serve(self) -> None:
        await self._group.assemble(EPOCH)
        prompt = rehearsal_prompt(self.chat, self.tokenizer, self.capacity)
        rehearsal = self._queue([prompt], rehearsal_answer(prompt, self.capacity))
        events: list[Event] = []
        while True:
            while (step := self.scheduler.schedule(time.monotonic())) is not None:
                self._watchdog.sent(step)
                self._group.send_step(step)
            # The ranks compute by now; the text of the step before is made meanwhile.
            if self._deliver(events):
                events = []
                continue
            if not (self.scheduler.running or self.scheduler.waiting or self.scheduler.in_flight):
                self.scheduler.audit()
                self._open(rehearsal)
            await self._wake.wait()
            self._wake.clear()
            events = self._collect()

    def _open(self, rehearsal: Generation) -> None:
        """Take requests, once the rehearsal is over on every rank; it counts nowhere."""
        if self.ready.is_set() or self._watchdog.waiting:
            return
        (request,) = rehearsal.requests
        if request.finish == "error":
            raise RankError(_("The first answer failed: %(reason)s"), reason=request.error)
        self.scheduler.counters = Counters()
        self.meter = Meter()
        for peer in self._group.peers:
            peer.forget_times()
        self.ready.set()
        log.info("Ready: %s over %s.", self.spec.served_name, self.spec.config.plan)

    def _collect(self) -> list[Event]:
        events: list[Event] = []
        while self._results:
            now = time.monotonic()
            step_events = self.scheduler.apply(self._results.popleft(), now)
            self.meter.record(step_events, now)
            events += step_events
        return events

    def _deliver(self, events: list[Event]) -> bool:
        """Hand text to its readers. True when a stop string ended a request, freeing its blocks."""
        freed = False
        for event in events:
            held = self._answers.get(event.request.id)
            if held is None:
                continue
            answer, generation = held
            delta = answer.take(event)
            if delta.finish is not None:
                del self._answers[event.request.id]
                if event.finish is None:
                    self.scheduler.end(event.request.id, delta.finish)
                    freed = True
            generation.put(delta)
        return freed

    def _finished(self, peer: RankPeer, message: Result | StepDone) -> None:
        self._watchdog.finished(peer, message.n)
        if isinstance(message, Result) and peer.rank == self._group.output_rank:
            self._results.append(message)
            self._wake.set()
        elif not self.ready.is_set():
            self._wake.set()
