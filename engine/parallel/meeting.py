"""How the members of a group find each other: one socket a pair, whatever kind of socket."""

import hmac
import socket
import struct
import time
from collections.abc import Callable
from contextlib import ExitStack

from torch._C._distributed_c10d import Store

from engine.errors import RankError
from engine.errors import gettext_noop as _

_HELLO = struct.Struct(">I32s")
_GREETING_SECONDS = 10.0


class Introductions:
    """Each member connects to the lower ones and is connected to by the higher ones, which prove
    that they know the launch's token."""

    def __init__(self, store: Store, rank: int, size: int, token: str, seconds: float) -> None:
        self._store = store
        self._rank = rank
        self._size = size
        self._token = token
        self._seconds = seconds

    def meet(
        self, listener: socket.socket, address: str, connect: Callable[[str], socket.socket]
    ) -> dict[int, socket.socket]:
        """Sockets by peer. `address` is this listener's, in the words that `connect` takes.

        Raises OSError when a peer cannot be reached, RankError when one does not come in time.
        """
        self._store.set(f"address{self._rank}", address)
        sockets: dict[int, socket.socket] = {}
        with ExitStack() as met:
            for peer in range(self._rank):
                sockets[peer] = sock = met.enter_context(
                    connect(self._store.get(f"address{peer}").decode())
                )
                sock.sendall(_HELLO.pack(self._rank, self._proof(self._rank, peer)))
            deadline = time.monotonic() + self._seconds
            while len(sockets) < self._size - 1:
                peer, sock = self._accept(listener, deadline)
                if peer in sockets:
                    sock.close()
                else:
                    sockets[peer] = met.enter_context(sock)
            met.pop_all()
        return sockets

    def _accept(self, listener: socket.socket, deadline: float) -> tuple[int, socket.socket]:
        """The next higher member that connects."""
        while True:
            listener.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                sock, _address = listener.accept()
            except TimeoutError as error:
                raise RankError(
                    _("A peer did not connect within %(seconds)s s."), seconds=round(self._seconds)
                ) from error
            peer = self._identify(sock)
            if peer is not None and self._rank < peer < self._size:
                return peer, sock
            sock.close()

    def _identify(self, sock: socket.socket) -> int | None:
        """Who connected; None when the greeting is short, late or unproven."""
        sock.settimeout(_GREETING_SECONDS)
        try:
            greeting = sock.recv(_HELLO.size, socket.MSG_WAITALL)
        except OSError:
            return None
        if len(greeting) < _HELLO.size:
            return None
        peer, proof = _HELLO.unpack(greeting)
        known = hmac.compare_digest(proof, self._proof(peer, self._rank))
        return int(peer) if known else None

    def _proof(self, sender: int, receiver: int) -> bytes:
        """Shows that `sender` knows the launch's token without saying it."""
        message = f"{sender}->{receiver}".encode()
        return hmac.digest(self._token.encode(), message, "sha256")
