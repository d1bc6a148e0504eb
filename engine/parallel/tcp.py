"""Links over plain TCP sockets between the ranks of one group.

Tensor-parallel decoding exchanges a few kilobytes sixty times a step, so latency is all that
counts. Measured between two ranks on one 2-core box, one token of 576 floats: an exchange takes
0.07 ms here, a gloo send and receive 0.4 to 1.0 ms, a gloo all-reduce 2.7 ms.
"""

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor
from torch._C._distributed_c10d import Store

from engine.errors import RankError
from engine.errors import gettext_noop as _
from engine.parallel.meeting import Introductions

_CONNECT_SECONDS = 10.0


class TcpLinks:
    """One socket a peer, bound to this rank's own address. Peers prove that they know the token."""

    name = "tcp"

    def __init__(
        self, store: Store, rank: int, size: int, host: str, token: str, seconds: float
    ) -> None:
        self.rank = rank
        self.size = size
        self._seconds = seconds
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, 0), family=family, backlog=size) as listener:
            address = f"{host} {listener.getsockname()[1]}"
            self._sockets = Introductions(store, rank, size, token, seconds).meet(
                listener, address, lambda peer: _connect(peer, host)
            )
        for sock in self._sockets.values():
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)

    def exchange(self, outgoing: dict[int, Tensor], incoming: dict[int, Tensor]) -> None:
        """Send and receive at once, so that large messages crossing each other never block."""
        sends = {peer: _bytes(tensor) for peer, tensor in outgoing.items()}
        receives = {peer: _bytes(tensor) for peer, tensor in incoming.items()}
        while True:
            self._send(sends)
            self._receive(receives)
            if not sends and not receives:
                return
            self._wait(sends, receives)

    def close(self) -> None:
        for sock in self._sockets.values():
            sock.close()

    def _send(self, pending: dict[int, memoryview]) -> None:
        for peer in list(pending):
            with self._contact(peer):
                view = pending[peer]
                view = view[self._sockets[peer].send(view) :]
                if view:
                    pending[peer] = view
                else:
                    del pending[peer]

    def _receive(self, pending: dict[int, memoryview]) -> None:
        for peer in list(pending):
            with self._contact(peer):
                view = pending[peer]
                count = self._sockets[peer].recv_into(view)
                if not count:
                    raise ConnectionResetError("closed by the peer")
                view = view[count:]
                if view:
                    pending[peer] = view
                else:
                    del pending[peer]

    @contextmanager
    def _contact(self, peer: int) -> Iterator[None]:
        try:
            yield
        except BlockingIOError:
            pass
        except OSError as error:
            raise RankError(
                _("Lost the connection to peer %(peer)s of the group."), peer=peer
            ) from error

    def _wait(self, sends: dict[int, memoryview], receives: dict[int, memoryview]) -> None:
        poll = select.poll()
        for peer in sends.keys() | receives.keys():
            wanted = select.POLLOUT if peer in sends else 0
            wanted |= select.POLLIN if peer in receives else 0
            poll.register(self._sockets[peer], wanted)
        if not poll.poll(self._seconds * 1000):
            silent = min(receives.keys() | sends.keys())
            raise RankError(
                _("Peer %(silent)s of the group was silent for %(seconds)s s."),
                silent=silent,
                seconds=round(self._seconds),
            )


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.contiguous().numpy().data.cast("B")


def _connect(address: str, host: str) -> socket.socket:
    peer_host, port = address.split()
    return socket.create_connection(
        (peer_host, int(port)), timeout=_CONNECT_SECONDS, source_address=(host, 0)
    )
