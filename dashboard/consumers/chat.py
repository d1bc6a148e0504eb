"""`/ws/chat`: the playground's socket. One answer at a time; closing the tab stops it."""

import asyncio
import json
import logging
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

import msgspec
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import translation
from django.utils.translation import gettext as _

from dashboard import conversations, leaving
from dashboard.access import hidden_routes, may
from dashboard.choices import MessageStatus, Role
from dashboard.consumers.answer import Answering
from dashboard.conversations import Turn
from dashboard.errors import TandemError
from dashboard.gateway.passage import Passage
from dashboard.gateway.patience import patiently
from dashboard.gateway.reconnect import attached
from dashboard.parameters import Parameters
from dashboard.texts import storable
from monitoring.visitors import signed_out

logger = logging.getLogger(__name__)
SIGNED_OUT = 4403
STOP_SECONDS = 5.0
ADOPT_SECONDS = 20.0
"""How long an answer is looked for that lost its writer."""
ADOPT_PAUSE = 0.5
MAX_TEXT = 200_000


Route = Annotated[str, msgspec.Meta(pattern=r"^[-\w]+$", max_length=80)]
"""As a deployment may be named."""


class Send(msgspec.Struct, tag="send"):
    """A new question; without a conversation it starts one."""

    route: Route
    text: str
    conversation: int | None = None
    system: str = ""
    parameters: Parameters = msgspec.field(default_factory=Parameters)


class Again(msgspec.Struct, tag="again"):
    """Answer the last question once more."""

    route: Route
    conversation: int
    system: str = ""
    parameters: Parameters = msgspec.field(default_factory=Parameters)


class Follow(msgspec.Struct, tag="follow"):
    """Go on with an answer that this page shows and nobody seems to write any more."""

    conversation: int


class Stop(msgspec.Struct, tag="stop"):
    pass


_decoder: msgspec.json.Decoder[Send | Again | Follow | Stop] = msgspec.json.Decoder(
    Send | Again | Follow | Stop
)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("An answer broke off.", exc_info=error)


class ChatConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels is untyped
    """Accepts `send`, `again`, `follow` and `stop`; answers `conversation`, `start`, `delta`,
    `reasoning`, `render`, `paused`, `resumed`, `done` and `error`."""

    answering: Answering | None = None
    task: asyncio.Task[None] | None = None
    gone = False
    _signed_in: asyncio.Task[None] | None = None
    """Ends with the user's session, or with the right to talk."""

    async def connect(self) -> None:
        await self.accept()
        if not self.scope["user"].is_authenticated:
            await self.close(SIGNED_OUT)
            return
        if not await database_sync_to_async(may)(self.scope["user"], Role.MEMBER):
            await self.close(SIGNED_OUT)
            return
        self._speak()
        self._signed_in = asyncio.create_task(self._sign_out())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        try:
            message = _decoder.decode(text_data or "")
        except msgspec.MsgspecError as error:
            await self._say("error", message=_("The page sent something odd: %s.") % error)
            return
        if isinstance(message, Stop):
            await self._stop()
            return
        try:
            if isinstance(message, Follow):
                self._follow(message)
            else:
                await self._begin(message)
        except TandemError as error:
            await self._say("error", message=str(error))

    async def disconnect(self, code: int) -> None:
        self.gone = True
        if self.answering is not None:
            self.answering.left = leaving.asked()
        await self._stop()
        if self._signed_in is not None:
            self._signed_in.cancel()
            await asyncio.wait({self._signed_in})

    async def _sign_out(self) -> None:
        await signed_out(self.scope, database_sync_to_async(self._still_signed_in))
        text = _("You were signed out. Sign in in another tab, then send it again here.")
        await self._say("error", message=text)
        with suppress(OSError):
            await self.close(SIGNED_OUT)

    async def _begin(self, message: Send | Again) -> None:
        if self.task is not None and not self.task.done():
            raise conversations.Busy(_("An answer is on its way; stop it or wait for its end."))
        if not await patiently(self._still_signed_in):
            text = _("You were signed out. Sign in in another tab, then send it again here.")
            await self._say("error", message=text)
            await self.close(SIGNED_OUT)
            return
        parameters = message.parameters.fields()
        turn = await patiently(self._turn, message)
        await self._say("conversation", id=turn.conversation.pk, title=turn.conversation.title)
        self.answering = Answering(turn, parameters, self._send_message)
        self._start(self.answering.run())

    def _follow(self, message: Follow) -> None:
        if self.task is None or self.task.done():
            self.answering = None
            self._start(self._adopt(message.conversation))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self.task = asyncio.create_task(work)
        self.task.add_done_callback(_log_failure)

    async def _adopt(self, conversation: int) -> None:
        """Finish an answer whose writer died with its process, while its head still has it."""
        deadline = time.monotonic() + ADOPT_SECONDS
        while time.monotonic() < deadline:
            turn = await patiently(conversations.unfinished, self.scope["user"], conversation)
            if turn is None:
                return
            if turn.conversation.route in await patiently(hidden_routes, self.scope["user"]):
                return
            passage = await self._take_up(turn)
            if passage is not None:
                self.answering = Answering(turn, {}, self._send_message, passage)
                await self.answering.run()
                return
            await asyncio.sleep(ADOPT_PAUSE)

    async def _take_up(self, turn: Turn) -> Passage | None:
        """None while somebody writes it, or where no head has it."""
        if not conversations.is_left(turn):
            return None
        return await attached(turn.answer.stream, turn.answer.launch, orphan=True)

    def _still_signed_in(self) -> bool:
        """The socket may be older than a sign-out, an expiry or the end of the account."""
        session = self.scope.get("session")
        if session is not None and not session.exists(session.session_key):
            return False
        user = User.objects.filter(pk=self.scope["user"].pk, is_active=True).first()
        return user is not None and may(user, Role.MEMBER)

    def _turn(self, message: Send | Again) -> Turn:
        user = self.scope["user"]
        if message.route in hidden_routes(user):
            raise TandemError(_("There is no model named “%(name)s”.") % {"name": message.route})
        if len(message.system) > MAX_TEXT:
            raise TandemError(_("Instructions may have at most %s characters.") % MAX_TEXT)
        if isinstance(message, Again):
            pk, system = message.conversation, message.system.strip()
            return conversations.ask_again(user, pk, message.route, system)
        text = storable(message.text).strip()
        if not text or len(text) > MAX_TEXT:
            raise TandemError(_("A message must have between 1 and %s characters.") % MAX_TEXT)
        pk_or_new = message.conversation
        return conversations.ask(user, pk_or_new, message.route, text, message.system.strip())

    async def _stop(self) -> None:
        """Hang up on the head; wait until what came is kept."""
        task, answering = self.task, self.answering
        if task is None or (answering is not None and answering.ended):
            return
        if not task.cancelling():
            task.cancel()
        await asyncio.wait({task}, timeout=STOP_SECONDS)
        if answering is None:
            return
        await answering.end(MessageStatus.STOPPED)  # a task cancelled before it began says nothing

    async def _say(self, kind: Literal["conversation", "error"], **fields: Any) -> None:
        await self._send_message({"type": kind, **fields})

    async def _send_message(self, message: dict[str, Any]) -> None:
        if self.gone:
            return
        with suppress(OSError):  # the browser has just left; `disconnect` comes next
            await self.send(text_data=json.dumps(message, ensure_ascii=False))

    def _speak(self) -> None:
        """The page's language, for errors and for rendered messages."""
        query = parse_qs(self.scope["query_string"].decode("ascii", "replace"))
        wanted = query.get("language", [settings.LANGUAGE_CODE])[0]
        try:
            translation.activate(translation.get_supported_language_variant(wanted))
        except LookupError:
            translation.activate(settings.LANGUAGE_CODE)
