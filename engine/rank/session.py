"""The rank's conversation with its head. One thread owns reading and answers pings at any time."""

import queue
import socket
import threading
import time
from typing import TypeVar

import msgspec

from engine.errors import DeadlineError, EngineError, ProtocolError, system_words
from engine.errors import gettext_noop as _
from engine.protocol.framing import pack_frame, recv_frame
from engine.protocol.launch import Address
from engine.protocol.steps import (
    FromRank,
    Phase,
    Ping,
    Pong,
    Shutdown,
    ToRank,
    decode_to_rank,
    encode,
)
from engine.rank.lifeline import leave, say

CONNECT_SECONDS = 60.0
RETRY_SECONDS = 0.2

M = TypeVar("M", bound=msgspec.Struct)


class Session:
    """Messages from the head, in order; pings and the end of the session are handled here."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sending = threading.Lock()
        self._inbox: queue.SimpleQueue[ToRank] = queue.SimpleQueue()
        self.phase: Phase = "starting"
        self.step = -1
        threading.Thread(target=self._read, name="session", daemon=True).start()

    def send(self, message: FromRank) -> None:
        """Raises OSError when the head has gone."""
        frame = pack_frame(encode(message))
        with self._sending:
            self._sock.sendall(frame)

    def next(self) -> ToRank:
        """The next message, however long it takes: a lost head ends the process from the reader."""
        return self._inbox.get()

    def expect(self, kind: type[M], seconds: float) -> M:
        """The next message, which must be a `kind`; raises ProtocolError or DeadlineError."""
        try:
            message = self._inbox.get(timeout=seconds)
        except queue.Empty as error:
            raise DeadlineError(
                _("The head did not send %(wanted)s within %(seconds)s s."),
                wanted=kind.__name__,
                seconds=round(seconds),
            ) from error
        if not isinstance(message, kind):
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
            say("The head closed the connection; leaving.")
            leave(1)
        except (EngineError, msgspec.MsgspecError) as error:
            say(f"The head sent something unreadable: {error}")
            leave(1)

    def _take(self, message: ToRank) -> None:
        if isinstance(message, Ping):
            self.send(Pong(self.phase, self.step))
        elif isinstance(message, Shutdown):
            say("The head asked this rank to stop.")
            leave(0)
        else:
            self._inbox.put(message)


def connect(control: Address, host: str, seconds: float = CONNECT_SECONDS) -> Session:
    """Reach the head from this node's address `host`, retrying while it starts."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            sock = socket.create_connection(
                (control.host, control.port), timeout=5.0, source_address=(host, 0)
            )
            break
        except OSError as error:
            if time.monotonic() > deadline:
                raise DeadlineError(
                    _(
                        "The head at %(control)s did not answer from %(host)s within %(seconds)s "
                        "s: %(reason)s."
                    ),
                    control=str(control),
                    host=host,
                    seconds=round(seconds),
                    reason=system_words(error),
                ) from error
            time.sleep(RETRY_SECONDS)
    sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _keep_alive(sock)
    return Session(sock)


def _keep_alive(sock: socket.socket) -> None:
    """Notice within about half a minute that the head's box lost power or network."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
