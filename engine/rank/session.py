"""The rank's conversation with its head. One thread owns reading and answers pings at any time."""

import os
import queue
import socket
import threading
import time
from collections.abc import Callable
from itertools import chain, repeat
from typing import TypeVar

import msgspec

from engine.errors import DeadlineError, EngineError, ProtocolError, said, system_words
from engine.errors import gettext_noop as _
from engine.protocol.framing import pack_frame, recv_frame
from engine.protocol.launch import EPOCH_OVER, Address, ProcessSpec
from engine.protocol.steps import (
    PROTOCOL_VERSION,
    Activity,
    FromRank,
    Hello,
    Phase,
    Ping,
    Pong,
    Shutdown,
    ToRank,
    Welcome,
    decode_to_rank,
    encode,
)
from engine.rank.lifeline import leave, say

CONNECT_SECONDS = 60.0
RETRY_SECONDS = (0.05, 0.1, 0.2, 0.5)
"""Between two attempts; the last for all that follow. A head may be starting again as well."""
_TRY_SECONDS = 2.0
WELCOME_SECONDS = 600.0
"""Other ranks may still be starting on slower boxes."""

M = TypeVar("M", bound=msgspec.Struct)


class Session:
    """Messages from the head, in order; pings and the end of the session are handled here."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sending = threading.Lock()
        self._inbox: queue.SimpleQueue[ToRank | None] = queue.SimpleQueue()
        """None: the head hung up before it bade this rank welcome."""
        self._welcome = False
        self.phase: Phase = "starting"
        self.step = -1
        self.activity: Callable[[], Activity] = Activity
        """What the rank is at; asked from the thread that answers pings."""
        self.expert_tokens: Callable[[], tuple[int, ...]] = tuple
        threading.Thread(target=self._read, name="session", daemon=True).start()

    def send(self, message: FromRank) -> None:
        """Raises OSError when the head has gone."""
        frame = pack_frame(encode(message))
        with self._sending:
            self._sock.sendall(frame)

    def greet(self, hello: Hello) -> int | None:
        """Introduce this rank; the epoch that the head answers with, None when it hung up."""
        try:
            self.send(hello)
        except OSError:
            return None
        welcome = self._take_next(Welcome, WELCOME_SECONDS)
        return None if welcome is None else welcome.epoch

    def next(self) -> ToRank:
        """The next message, however long it takes: a lost head ends the process from the reader."""
        message = self._inbox.get()
        if message is None:
            raise ProtocolError(_("The head hung up."))
        return message

    def expect(self, kind: type[M], seconds: float) -> M:
        """The next message, which must be a `kind`; raises ProtocolError or DeadlineError."""
        message = self._take_next(kind, seconds)
        if message is None:
            raise ProtocolError(_("The head hung up."))
        return message

    def _take_next(self, kind: type[M], seconds: float) -> M | None:
        try:
            message = self._inbox.get(timeout=seconds)
        except queue.Empty as error:
            raise DeadlineError(
                _("The head did not send %(wanted)s within %(seconds)s s."),
                wanted=kind.__name__,
                seconds=round(seconds),
            ) from error
        if message is not None and not isinstance(message, kind):
            raise ProtocolError(
                _("The head sent %(kind)s where %(wanted)s was due."),
                kind=type(message).__name__,
                wanted=kind.__name__,
            )
        return message

    def _read(self) -> None:
        try:
            while True:
                self._take(decode_to_rank(recv_frame(self._sock)))
        except (EOFError, OSError):
            if not self._welcome:
                self._inbox.put(None)
                return
            say("The head closed the connection; leaving.")
            leave(EPOCH_OVER)
        except (EngineError, msgspec.MsgspecError) as error:
            say(f"The head sent something unreadable: {error}")
            leave(1)

    def _take(self, message: ToRank) -> None:
        if isinstance(message, Ping):
            self.send(Pong(self.phase, self.step, self.activity(), self.expert_tokens()))
        elif isinstance(message, Shutdown):
            say("The head asked this rank to stop.")
            leave(0)
        else:
            self._welcome = self._welcome or isinstance(message, Welcome)
            self._inbox.put(message)


def reach_head(spec: ProcessSpec) -> tuple[Session, int]:
    """Introduce this rank to its head, however often that starts meanwhile; the session, and the
    epoch that the head bids welcome to. Raises DeadlineError when it is not to be reached."""
    deadline = time.monotonic() + CONNECT_SECONDS
    hello = Hello(PROTOCOL_VERSION, spec.launch, spec.token, spec.rank or 0, os.getpid())
    for pause in chain(RETRY_SECONDS, repeat(RETRY_SECONDS[-1])):
        try:
            session = Session(_connect(spec.control, spec.host))
            say(f"Rank {spec.rank} reached its head at {spec.control} from {spec.host}.")
            if (epoch := session.greet(hello)) is not None:
                return session, epoch
            reason = said(_("it hung up"))
        except OSError as error:
            reason = system_words(error)
        if time.monotonic() > deadline:
            raise DeadlineError(
                _(
                    "The head at %(control)s did not answer from %(host)s within %(seconds)s s: "
                    "%(reason)s."
                ),
                control=str(spec.control),
                host=spec.host,
                seconds=round(CONNECT_SECONDS),
                reason=reason,
            )
        time.sleep(pause)
    raise AssertionError("the pauses have no end")


def _connect(control: Address, host: str) -> socket.socket:
    sock = socket.create_connection(
        (control.host, control.port), timeout=_TRY_SECONDS, source_address=(host, 0)
    )
    sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _keep_alive(sock)
    return sock


def _keep_alive(sock: socket.socket) -> None:
    """Notice within seconds that the head is out of reach: it gave this rank up long before, and
    starts over with those that come back."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", 2),
        ("TCP_KEEPINTVL", 1),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 5000),
    ):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
