"""All ranks of one launch: who may join, how they start, and what is wrong with them."""

import asyncio
import hmac
import logging
import time
from collections.abc import Callable

import msgspec

from engine.errors import DeadlineError, EngineError, ProtocolError, RankError, Said, said
from engine.errors import gettext_noop as _
from engine.head.deadlines import Deadlines
from engine.head.peer import RankPeer
from engine.head.wording import describe_progress, describe_ready, joined, lost, name_ranks
from engine.protocol.framing import pack_frame, read_frame
from engine.protocol.launch import Address, ProcessSpec
from engine.protocol.steps import (
    PROTOCOL_VERSION,
    Failed,
    Fit,
    FromRank,
    Hello,
    Join,
    Meeting,
    Ready,
    Result,
    Shutdown,
    Step,
    StepDone,
    ToRank,
    Welcome,
    decode_from_rank,
    encode,
)

log = logging.getLogger(__name__)

MAX_GREETING = 4096
"""Bytes a stranger may send."""

Finished = Callable[[RankPeer, Result | StepDone], None]


class RankGroup:
    """Listens for ranks, takes them through the session of protocol/steps.py, reports faults.

    `finished` is called for every step a rank ends; `watch` raises the one error that ends the
    launch.
    """

    def __init__(self, spec: ProcessSpec, deadlines: Deadlines, finished: Finished) -> None:
        plan = spec.config.plan
        self._spec = spec
        self._deadlines = deadlines
        self._finished = finished
        self.output_rank = plan.output_rank
        self.peers = [RankPeer(rank) for rank in range(plan.world_size)]
        self._fault: asyncio.Future[EngineError] = asyncio.get_running_loop().create_future()
        self._gone: dict[int, EngineError] = {}
        self._complaints: dict[int, EngineError] = {}
        self._changed = asyncio.Event()
        self._meeting: Meeting | None = None
        self._server: asyncio.Server | None = None
        self._closing = False

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

    async def listen(self) -> Address:
        """Open the control port; raises OSError when it is taken."""
        control = self._spec.control
        self._server = await asyncio.start_server(self._serve, control.host, control.port)
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(host, port)

    async def assemble(self, epoch: int) -> None:
        """Wait until every rank is ready; raises DeadlineError naming those that are not."""
        await self._wait(
            lambda: self.complete,
            self._deadlines.assembling,
            self._nobody,
        )
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
        self.broadcast(Fit(self._spec.config.num_kv_blocks))
        await self._progress_until(lambda peer: peer.ready is not None)

    def send_step(self, step: Step) -> None:
        for peer in self.peers:
            peer.phase, peer.step = "step", step.n
        self.broadcast(step)

    def broadcast(self, message: ToRank) -> None:
        frame = pack_frame(encode(message))
        for peer in self.peers:
            peer.send_frame(frame)

    async def watch(self) -> None:
        """Until something is wrong with a rank; raises the RankError that names it."""
        raise await self._fault

    async def close(self) -> None:
        """Tell the ranks to end and hang up."""
        self._closing = True
        self.broadcast(Shutdown())
        for peer in self.peers:
            peer.disconnect()
        if self._server is not None:
            self._server.close()

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
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return

    def _nobody(self, seconds: str) -> DeadlineError:
        away = [peer.rank for peer in self.peers if not peer.connected]
        return DeadlineError(
            _("No connection within %(seconds)s s from %(ranks)s."),
            seconds=seconds,
            ranks=name_ranks(away),
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            peer = await self._greet(reader, writer)
        except ProtocolError as error:
            log.warning("Refused a connection to the control port: %s", error)
            writer.close()
            return
        log.info("Rank %d has connected, process %d.", peer.rank, peer.pid)
        try:
            while True:
                self._hear(peer, decode_from_rank(await read_frame(reader)))
        except (asyncio.IncompleteReadError, OSError):
            self._note(self._gone, peer, lost(peer))
        except (ProtocolError, msgspec.MsgspecError) as error:
            garbled = RankError(
                _("Rank %(rank)s sent a message that cannot be read: %(error)s"),
                rank=peer.rank,
                error=str(error),
            )
            self._note(self._complaints, peer, garbled)
        finally:
            peer.disconnect()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> RankPeer:
        """Check a stranger's Hello; raises ProtocolError, and says nothing about secrets."""
        try:
            payload = await asyncio.wait_for(
                read_frame(reader, MAX_GREETING), self._deadlines.greeting
            )
            hello = decode_from_rank(payload)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, msgspec.MsgspecError) as error:
            raise ProtocolError("it did not say hello.") from error
        if not isinstance(hello, Hello):
            raise ProtocolError("it did not say hello.")
        if hello.version != PROTOCOL_VERSION:
            raise ProtocolError(f"it speaks version {hello.version}, not {PROTOCOL_VERSION}.")
        token_right = hmac.compare_digest(hello.token.encode(), self._spec.token.encode())
        launch_right = hmac.compare_digest(hello.launch.encode(), self._spec.launch.encode())
        if not (token_right and launch_right):
            raise ProtocolError("its launch or token is wrong.")
        if not 0 <= hello.rank < len(self.peers):
            raise ProtocolError(f"there is no rank {hello.rank} in plan {self._spec.config.plan}.")
        peer = self.peers[hello.rank]
        if peer.connected or self._closing:
            raise ProtocolError(f"rank {hello.rank} is already connected.")
        peer.connect(writer, hello.pid)
        self._changed.set()
        return peer

    def _hear(self, peer: RankPeer, message: FromRank) -> None:
        peer.hear(message)
        match message:
            case Result() | StepDone():
                self._finished(peer, message)
                return
            case Meeting() if peer.rank == 0:
                self._meeting = message
            case Ready():
                log.info("%s", describe_ready(peer.rank, message))
            case Failed():
                error = RankError(
                    _("Rank %(rank)s failed: %(reason)s"), rank=peer.rank, reason=message.reason
                )
                self._note(self._complaints, peer, error)
        self._changed.set()

    def _note(self, faults: dict[int, EngineError], peer: RankPeer, error: EngineError) -> None:
        if not self._gone and not self._complaints:
            asyncio.get_running_loop().call_later(self._deadlines.blame, self._blame)
        faults.setdefault(peer.rank, error)

    def _blame(self) -> None:
        """Name the cause: a rank that vanished without a word, before one that complained."""
        silent = [error for rank, error in self._gone.items() if rank not in self._complaints]
        if not self._fault.done() and not self._closing:
            self._fault.set_result([*silent, *self._complaints.values()][0])
