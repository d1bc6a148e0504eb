"""`/ws/agent`: one node's agent. Messages are msgpack; see engine/protocol/agent.py."""

import asyncio
import contextlib
import logging
import time
from typing import Any
from uuid import uuid4

import msgspec
from channels.consumer import get_handler_name
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error as DatabaseError
from django.utils.translation import gettext_noop as _

from dashboard import lifecycle
from dashboard.consumers.loglines import keep_lines
from dashboard.consumers.pulse import pulse
from dashboard.lifecycle.firmware import take_parts
from dashboard.lifecycle.nodes import HEARTBEAT_SECONDS, SILENT_SECONDS
from dashboard.models import Node
from dashboard.outbox import node_group
from dashboard.sentences import Sentence
from engine.protocol.agent import (
    AGENT_PROTOCOL_VERSION,
    AgentHello,
    AgentWelcome,
    Desired,
    Firmware,
    FromAgent,
    Heartbeat,
    LogLines,
    Observed,
    Pong,
    Refused,
    Taken,
    Telemetry,
    ToAgent,
    decode_from_agent,
    encode,
)
from monitoring.live.ingest import Intake

log = logging.getLogger(__name__)

HELLO_SECONDS = 10.0
SEEN_SECONDS = 1.0
"""How often a sign of life is written down."""
LOOK_SECONDS = 2.0
"""How often the desired state is looked at without having been nudged."""
FIRST_REPORT_SECONDS = 3.0
"""An agent that has not reported by then is told what to run anyway."""
MOST_WAITING = 256
"""Reports and lines of one agent that wait for the database; more keep its connection waiting."""
SAME_SECONDS = 60.0
"""How often the report of an idle node is taken in though it says what it said before."""

WRONG_TOKEN, UNREADABLE, TAKEN_OVER, SILENT = 4401, 4400, 4409, 4408
TRY_AGAIN = 1013
"""The code of sockets that are closed because the database does not answer."""
SERVICE_RESTART = 1012
"""The code of sockets that this server closes because it stops."""


class AgentConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels is untyped
    node: Node | None = None

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Without Channels' look at old database connections, which has a thread in common with
        every query: a heartbeat or a reading would wait for them."""
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        self.connection = uuid4().hex
        self.joined = False
        self.told: int | None = None
        self._wanted: int | None = None
        """The generation of what the node should run, when it was last looked at."""
        self._reported: tuple[float, Observed] | None = None
        self.closed_because = Sentence(_("its connection was closed."))
        self._heard = time.monotonic()
        self._working, self._closed = True, False
        self._written = 0.0
        self._untaken: Observed | None = None
        self.desk: asyncio.Queue[tuple[FromAgent, float] | None] = asyncio.Queue(MOST_WAITING)
        await self.accept()
        self.work = asyncio.create_task(self._work())
        self.work.add_done_callback(self._work_ended)

    async def _admitted(self) -> bool:
        try:
            self.node = await database_sync_to_async(lifecycle.node_with_token)(self._token())
        except DatabaseError:
            await self._put_off()
            return False
        if self.node is None:
            log.warning("An agent came with an unknown token.")
            await self._refuse("This node's token is not known here.", WRONG_TOKEN)
            return False
        self.watch = asyncio.create_task(self._watch())
        return True

    def _token(self) -> str:
        header = dict(self.scope["headers"]).get(b"authorization", b"").decode("latin-1")
        kind, _space, token = header.partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""

    async def disconnect(self, code: int) -> None:
        self._closed = True
        if not self.work.done():
            await self.desk.put(None)
            await asyncio.wait({self.work})
        if self.node is None:
            return
        await pulse().forget(self.node.pk, self)
        self.watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.watch
        if self.joined:
            self.answers.cancel()
            await asyncio.wait({self.answers})
            await self.channel_layer.group_discard(node_group(self.node.pk), self.channel_name)
            # This server going away says nothing of the node: its agent dials again, or is missed.
            if code != SERVICE_RESTART:
                await self._say_goodbye()

    async def _say_goodbye(self) -> None:
        assert self.node is not None
        try:
            await database_sync_to_async(lifecycle.disconnect)(
                self.node.pk, self.connection, self.closed_because
            )
        except DatabaseError:  # Its silence will be noticed.
            log.warning("Node %s went while the database did not answer.", self.node)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **_: Any
    ) -> None:
        heard = time.time()
        self._heard = time.monotonic()
        if self._closed:
            return
        try:
            message = decode_from_agent(bytes_data or b"")
        except msgspec.MsgspecError as error:
            log.warning("Node %s sent something unreadable: %s", self.node, error)
            await self._refuse(f"The message cannot be read: {error}.", UNREADABLE)
            return
        if self.joined and isinstance(message, Heartbeat | Telemetry):
            await self._take(message, heard)
        else:
            await self.desk.put((message, heard))

    async def _hello(self, message: AgentHello) -> None:
        assert self.node is not None
        if self.joined:
            await self._refuse("The hello was said before.", UNREADABLE)
            return
        if message.version != AGENT_PROTOCOL_VERSION:
            await self._refuse(
                f"The agent speaks protocol {message.version}, this panel "
                f"{AGENT_PROTOCOL_VERSION}; install the same version on both.",
                UNREADABLE,
            )
            return
        try:
            self.node = await database_sync_to_async(lifecycle.connect)(
                self.node.pk, self.connection, message.inventory
            )
        except DatabaseError:
            await self._put_off()
            return
        await self.channel_layer.group_add(node_group(self.node.pk), self.channel_name)
        self.joined = True
        self.intake = Intake(self.node.pk)
        self.answers = asyncio.create_task(self._answer())
        self._written = time.monotonic()
        await self._say(AgentWelcome(self.node.name, HEARTBEAT_SECONDS))

    async def _take(self, message: Heartbeat | Telemetry, heard: float) -> None:
        """What waits for no database. `heard`: when it came, in Unix seconds."""
        self._note_seen()
        if isinstance(message, Heartbeat):
            await self._say(Pong(message.at, heard, time.time()))
        else:
            self.intake.take(message.seq, message.at, message.layouts, message.readings)

    async def _work(self) -> None:
        """What waits for the database, in the order in which it came; ends with the connection.

        The socket is read on meanwhile: one that is not would not answer its agent's pings.
        """
        if not await self._admitted():
            return
        while True:
            self._working, self._heard = False, time.monotonic()
            item = await self.desk.get()
            if item is None:
                return
            self._working = True
            try:
                await self._work_on(*item)
            except DatabaseError as error:
                # A report is taken in once the database is back; a line is lost.
                log.warning("A message of node %s waits or is lost: %s", self.node, error)

    async def _work_on(self, message: FromAgent, heard: float) -> None:
        assert self.node is not None
        if isinstance(message, AgentHello):
            if not self._closed:
                await self._hello(message)
        elif not self.joined:
            await self._refuse("The first message must be a hello.", UNREADABLE)
        elif isinstance(message, LogLines):
            self._note_seen()
            await database_sync_to_async(keep_lines)(self.node.pk, message)
        elif isinstance(message, Observed):
            self._note_seen()
            self._untaken = message
            await self._observe()
        elif isinstance(message, Firmware):
            await database_sync_to_async(take_parts)(self.node.pk, message.parts)
        else:
            await self._take(message, heard)

    def _work_ended(self, work: asyncio.Task[None]) -> None:
        """A mistake in taking something in ends the connection, so that the agent begins anew."""
        if not work.cancelled() and (error := work.exception()) is not None:
            log.error("What node %s said cannot be taken in.", self.node, exc_info=error)
            self._ending = asyncio.get_running_loop().create_task(self.close(TRY_AGAIN))

    async def _answer(self) -> None:
        """Say which readings are stored, so that the agent need not keep them."""
        while True:
            await self._say(Taken(await self.intake.taken()))

    async def _observe(self) -> None:
        """Take in the newest report; whoever fails to leaves it for the next time."""
        assert self.node is not None
        observed, self._untaken = self._untaken, None
        if observed is None or self._is_nothing_new(observed):
            return
        try:
            await database_sync_to_async(lifecycle.observe)(self.node.pk, self.connection, observed)
            self._reported = time.monotonic(), observed
            if self.told is None:
                await self._tell()
        except DatabaseError:
            self._untaken = self._untaken or observed
            raise

    def _is_nothing_new(self, observed: Observed) -> bool:
        """Idle nodes are many, and say the same every few seconds."""
        if self._reported is None or observed.processes or observed.engines or observed.orders:
            return False
        at, before = self._reported
        settled = self.told == self._wanted == observed.generation
        return settled and observed == before and time.monotonic() - at < SAME_SECONDS

    def _note_seen(self) -> None:
        assert self.node is not None
        now = time.monotonic()
        if now - self._written >= SEEN_SECONDS:
            self._written = now
            pulse().note(self.node.pk, self)

    async def seen(self, generation: int | None) -> None:
        """From the pulse: the sign of life is written down."""
        self._wanted = generation
        if generation is None and self.joined:
            await self.close(TAKEN_OVER)

    async def _tell(self) -> None:
        assert self.node is not None
        await self._say_desired(await database_sync_to_async(lifecycle.desired_for)(self.node.pk))

    async def _say_desired(self, desired: Desired) -> None:
        self.told = desired.generation
        await self._say(desired)

    async def nudge(self, message: dict[str, Any]) -> None:
        if self.told is None:
            return
        with contextlib.suppress(DatabaseError):  # `_watch` makes up for it.
            await self._tell()

    async def taken_over(self, message: dict[str, Any]) -> None:
        if message["connection"] != self.connection:
            await self.close(TAKEN_OVER)

    async def _watch(self) -> None:
        """Ends a silent connection, and makes up for nudges that were lost with the broker."""
        await asyncio.sleep(FIRST_REPORT_SECONDS)
        while (quiet := self._quiet) < SILENT_SECONDS:
            if self.joined:
                await self._catch_up()
            await self._nap(min(LOOK_SECONDS, SILENT_SECONDS - quiet))
        self.closed_because = Sentence(
            _("nothing was heard from its agent for %(seconds)s s."), seconds=int(SILENT_SECONDS)
        )
        await self.close(SILENT)

    @property
    def _quiet(self) -> float:
        """Seconds without a word; while one is being taken in, the next ones may wait unheard."""
        return 0.0 if self._working else time.monotonic() - self._heard

    async def _nap(self, seconds: float) -> None:
        """What this process oversleeps, for want of a processor, is no silence of the agent."""
        due = time.monotonic() + seconds
        await asyncio.sleep(seconds)
        now = time.monotonic()
        self._heard = min(now, self._heard + max(0.0, now - due))

    async def _catch_up(self) -> None:
        assert self.node is not None
        try:
            await self._observe()
            if self._wanted is None or self._wanted != self.told:
                await self._tell_news()
        except (DatabaseError, Node.DoesNotExist) as error:
            log.warning("The desired state of node %s cannot be read: %s", self.node, error)

    async def _tell_news(self) -> None:
        assert self.node is not None
        desired = await database_sync_to_async(lifecycle.desired_for)(self.node.pk)
        if desired.generation != self.told:
            await self._say_desired(desired)

    async def _put_off(self) -> None:
        """The database does not answer; the agent dials again and its engines go on."""
        log.warning("An agent was put off: the database does not answer.")
        self.node = None
        await self.close(TRY_AGAIN)

    async def _refuse(self, reason: str, code: int) -> None:
        await self._say(Refused(reason))
        await self.close(code)

    async def _say(self, message: ToAgent) -> None:
        """To nobody once this side has closed, or the other has gone; `disconnect` follows."""
        if self._closed:
            return
        try:
            await self.send(bytes_data=encode(message))
        except OSError:
            self._closed = True

    async def close(self, code: int | None = None, reason: str | None = None) -> None:
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):
            await super().close(code, reason)
