"""Point-to-point links between the ranks of one group, over torch.distributed's gloo."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol

from torch import Tensor
from torch._C._distributed_c10d import ProcessGroupGloo, Store

from engine.errors import RankError
from engine.errors import gettext_noop as _

# torch's type stubs leave out the point-to-point half of this class.
_Gloo: Any = ProcessGroupGloo


class Links(Protocol):
    """Ordered, reliable links to every peer. A dead or silent peer raises RankError."""

    name: str
    rank: int
    size: int

    def exchange(self, outgoing: dict[int, Tensor], incoming: dict[int, Tensor]) -> None:
        """Send to some peers and fill tensors from others, all at once; returns when done."""
        ...

    def close(self) -> None: ...


class GlooLinks:
    """Links bound to this rank's own address, whatever other networks the box has."""

    name = "gloo"

    def __init__(self, store: Store, rank: int, size: int, host: str, timeout: timedelta) -> None:
        self.rank = rank
        self.size = size
        options = _Gloo._Options()
        options._devices = [_Gloo.create_device(hostname=host)]
        options._timeout = timeout
        self._group: Any = _Gloo(store, rank, size, options)

    def exchange(self, outgoing: dict[int, Tensor], incoming: dict[int, Tensor]) -> None:
        works: list[tuple[int, Any]] = []
        for peer, tensor in incoming.items():
            with _contact(peer):
                works.append((peer, self._group.recv([tensor], peer, peer)))
        for peer, tensor in outgoing.items():
            with _contact(peer):
                works.append((peer, self._group.send([tensor], peer, self.rank)))
        for peer, work in works:
            with _contact(peer):
                work.wait()

    def close(self) -> None:
        """Its sockets close with the last reference to it."""
        self._group = None


@contextmanager
def _contact(peer: int) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise RankError(
            _("Lost the connection to peer %(peer)s of the group."), peer=peer
        ) from error
