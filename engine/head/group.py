"""The ranks of one epoch: how they start, and what is wrong with them."""

import asyncio
import time
from collections.abc import Callable, Sequence

import msgspec

from engine.config import ParallelPlan
from engine.errors import DeadlineError, EngineError, ProtocolError, RankError, Said, said
from engine.errors import gettext_noop as _
from engine.head.deadlines import Deadlines
from engine.head.peer import RankPeer
from engine.head.wording import describe_progress, joined, lost, name_ranks
from engine.protocol.framing import pack_frame, read_frame
from engine.protocol.steps import (
    Failed,
    Fit,
    FromRank,
    Hello,
    Join,
    Loaded,
    Meeting,
    Result,
    Step,
    StepDone,
    ToRank,
    Welcome,
    decode_from_rank,
    encode,
)

Finished = Callable[[RankPeer, Result | StepDone], None]


class RankGroup:
    """Takes the ranks through the session of protocol/steps.py and reports faults.

    `finished` is called for every step a rank ends; `watch` raises the one error that ends the
    epoch.
    """

    def __init__(self, plan: ParallelPlan, deadlines: Deadlines, finished: Finished) -> None:
        self.plan = plan
        self.peers = [RankPeer(rank) for rank in range(plan.world_size)]
        self._deadlines = deadlines
        self._finished = finished
        self._fault: asyncio.Future[EngineError] = asyncio.get_running_loop().create_future()
        self._gone: dict[int, EngineError] = {}
        self._complaints: dict[int, EngineError] = {}
        self._changed = asyncio.Event()
        self._meeting: Meeting | None = None
        self._begun = False
        """Whether the ranks were bidden welcome; until then they may come and go."""
        self._over = False

    @property
    def complete(self) -> bool:
        """Whether every rank has said Hello."""
        return all(peer.connected for peer in self.peers)

    def describe(self) -> Said:
        """How far the start is, as a sentence."""
        if not self.complete:
            away = [peer.rank for peer in self.peers if not peer.connected]
            return said(_("Waiting for %(ranks)s."), ranks=name_ranks(away))
        states = [describe_progress(peer) for peer in self.peers if peer.ready is None]
        if not states:
            return said(_("Every rank is ready."))
        return said(_("%(progress)s."), progress=joined(states))

    def admit(self, hello: Hello, writer: asyncio.StreamWriter) -> RankPeer:
        """Take in a rank that proved to belong here; raises ProtocolError when it cannot join."""
        if self._over:
            raise ProtocolError("this epoch is over.")
        if not 0 <= hello.rank < len(self.peers):
            raise ProtocolError(f"there is no rank {hello.rank} in plan {self.plan}.")
        peer = self.peers[hello.rank]
        if self._begun:
            if peer.pid != hello.pid:
                # Nobody starts a rank anew before the old one has ended: news of its end.
                self._lose(peer)
            raise ProtocolError(f"this epoch has its rank {hello.rank}.")
        if peer.connected:
            peer.abort()
            peer = self.peers[hello.rank] = RankPeer(hello.rank)
        peer.connect(writer, hello.pid)
        self._changed.set()
        return peer

    async def follow(self, peer: RankPeer, reader: asyncio.StreamReader) -> None:
        """Hear what a rank says until it has gone."""
        try:
            while not self._over:
                self._hear(peer, decode_from_rank(await read_frame(reader)))
        except (asyncio.IncompleteReadError, OSError):
            self._lose(peer)
        except (ProtocolError, msgspec.MsgspecError) as error:
            garbled = RankError(
                _("Rank %(rank)s sent a message that cannot be read: %(error)s"),
                rank=peer.rank,
                error=str(error),
            )
            self._note(self._complaints, peer, garbled)
        finally:
            peer.disconnect()
            self._changed.set()

    async def gather(self, seconds: float) -> None:
        """Wait until every rank said Hello; raises DeadlineError naming those that did not."""
        await self._wait(lambda: self.complete, seconds, self._nobody)

    async def load(self, epoch: int) -> Sequence[Loaded]:
        """Have the ranks meet and load; what each has left for keys and values."""
        self._begun = True
        self.broadcast(Welcome(epoch))
        await self._wait(
            lambda: self._meeting is not None,
            self._deadlines.meeting,
            lambda seconds: DeadlineError(
                _("Rank 0 did not open the rendezvous store within %(seconds)s s."), seconds=seconds
            ),
        )
        assert self._meeting is not None
        self.broadcast(Join(self._meeting.host, self._meeting.port))
        await self._progress_until(lambda peer: peer.loaded is not None)
        return [peer.loaded for peer in self.peers if peer.loaded is not None]

    async def fit(self, blocks: int, *, brief: bool) -> None:
        """Have the ranks make so many KV blocks and warm up, long or `brief`; returns once all are
        ready."""
        self.broadcast(Fit(blocks, brief))
        await self._progress_until(lambda peer: peer.ready is not None)

    def send_step(self, step: Step, *, rested: bool) -> None:
        """`rested`: whether the ranks had nothing to do before it."""
        for peer in self.peers:
            peer.send_step(step.n, rested=rested)
        self.broadcast(step)

    def broadcast(self, message: ToRank) -> None:
        frame = pack_frame(encode(message))
        for peer in self.peers:
            peer.send_frame(frame)

    async def watch(self) -> None:
        """Until something is wrong with a rank; raises the RankError that names it."""
        raise await self._fault

    def hang_up(self) -> None:
        """End the session with every rank at once, and let none in any more."""
        self._over = True
        for peer in self.peers:
            peer.abort()

    def close(self) -> None:
        """The same, after everything that was said to them has been sent."""
        self._over = True
        for peer in self.peers:
            peer.disconnect()

    async def _progress_until(self, done: Callable[[RankPeer], bool]) -> None:
        """Each rank may take its time, as long as it shows progress."""
        limit = self._deadlines.loading
        for peer in self.peers:
            peer.progressed_at = time.monotonic()
        while missing := [peer for peer in self.peers if not done(peer)]:
            slowest = min(missing, key=lambda peer: peer.progressed_at)
            left = slowest.progressed_at + limit - time.monotonic()
            if left <= 0:
                raise DeadlineError(
                    _("%(progress)s, and made no progress for %(limit)s s."),
                    progress=describe_progress(slowest),
                    limit=f"{limit:g}",
                )
            await self._change(left)

    async def _wait(
        self, condition: Callable[[], bool], seconds: float, failure: Callable[[str], DeadlineError]
    ) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                raise failure(f"{seconds:g}")
            await self._change(left)

    async def _change(self, seconds: float) -> None:
        """Wait for any message or connection, or until the time is over."""
        self._changed.clear()
        # Not `wait_for`: before Python 3.12 that lost a cancellation which met a change, and an
        # epoch that was over went on waiting for its ranks.
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    def _nobody(self, seconds: str) -> DeadlineError:
        away = [peer.rank for peer in self.peers if not peer.connected]
        return DeadlineError(
            _("No connection within %(seconds)s s from %(ranks)s."),
            seconds=seconds,
            ranks=name_ranks(away),
        )

    def _hear(self, peer: RankPeer, message: FromRank) -> None:
        peer.hear(message)
        match message:
            case Result() | StepDone():
                self._finished(peer, message)
                return
            case Meeting() if peer.rank == 0:
                self._meeting = message
            case Failed():
                error = RankError(
                    _("Rank %(rank)s failed: %(reason)s"), rank=peer.rank, reason=message.reason
                )
                self._note(self._complaints, peer, error)
        self._changed.set()

    def _lose(self, peer: RankPeer) -> None:
        # One that came again before the beginning has left its first connection itself.
        if self._begun and self.peers[peer.rank] is peer:
            self._note(self._gone, peer, lost(peer))

    def _note(self, faults: dict[int, EngineError], peer: RankPeer, error: EngineError) -> None:
        if not self._gone and not self._complaints:
            asyncio.get_running_loop().call_later(self._deadlines.blame, self._blame)
        faults.setdefault(peer.rank, error)

    def _blame(self) -> None:
        """Name the cause: a rank that vanished without a word, before one that complained."""
        silent = [error for rank, error in self._gone.items() if rank not in self._complaints]
        if not self._fault.done() and not self._over:
            self._fault.set_result([*silent, *self._complaints.values()][0])
