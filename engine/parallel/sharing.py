"""Whether the members of a group can share memory, and how they come to."""

import ctypes
import fcntl
import mmap
import os
import secrets
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import msgspec
from torch._C._distributed_c10d import Store

from engine.errors import RankError, Said, said, system_words
from engine.errors import gettext_noop as _
from engine.parallel.meeting import Introductions
from engine.parallel.native import library_key, load_library
from engine.parallel.shm import SharedMemory

ATTACH_SECONDS = 15.0
"""All have just met in the store, so nobody is far."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What a member tells the others of where it is."""

    host: str = ""
    """Members with another one share no memory."""
    library: str = ""
    problem: Said = Said()


class Refusal(RankError):
    """This group cannot share memory; every member comes to the same sentence."""


def host_identity() -> str:
    """Of a kernel since its boot and a network namespace in it: two of these are two hosts, as
    their owner meant them to be. Empty where the system knows of neither."""
    if not sys.platform.startswith("linux"):
        return ""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/net').stat().st_ino}"
    except OSError:
        return ""


def share_memory(store: Store, rank: int, size: int, token: str, seconds: float) -> SharedMemory:
    """Called by every member; all get their memory, or all raise the same Refusal."""
    library, offer = _offer()
    offers = _round(store, "offer", rank, size, offer)
    _check([msgspec.json.decode(raw, type=Offer) for raw in offers])
    memory = _attached(library, store, rank, size, token, seconds)
    problem = memory if isinstance(memory, Said) else Said()
    problems = _round(store, "attached", rank, size, problem)
    for number, raw in enumerate(problems):
        if problem := msgspec.json.decode(raw, type=Said):
            if isinstance(memory, SharedMemory):
                memory.close()
            raise _refused(number, problem)
    assert isinstance(memory, SharedMemory)
    return memory


def _round(store: Store, name: str, rank: int, size: int, word: msgspec.Struct) -> list[bytes]:
    """Everyone's word, in rank order."""
    store.set(f"{name}{rank}", msgspec.json.encode(word).decode())
    return [store.get(f"{name}{member}") for member in range(size)]


def _offer() -> tuple[ctypes.CDLL | None, Offer]:
    host = host_identity()
    if not host:
        return None, Offer(problem=said(_("This system has no memory to share between ranks.")))
    try:
        return load_library(), Offer(host=host, library=library_key())
    except RankError as error:
        return None, Offer(host=host, problem=error.said)
    except OSError as error:  # A full disk, say: links need none.
        return None, Offer(host=host, problem=system_words(error))


def _check(offers: list[Offer]) -> None:
    for number, offer in enumerate(offers):
        if offer.problem:
            raise _refused(number, offer.problem)
        if offer.host != offers[0].host:
            raise Refusal(
                _(
                    "Ranks 0 and %(rank)s of a group are on different hosts, which share no "
                    "memory; choose the transport auto or tcp."
                ),
                rank=number,
            )
        if offer.library != offers[0].library:
            raise Refusal(_("The ranks of a group run different versions of Tandem."))


def _refused(member: int, reason: Said) -> Refusal:
    return Refusal(
        _("Rank %(rank)s of the group cannot share memory: %(reason)s"), rank=member, reason=reason
    )


def _attached(
    library: ctypes.CDLL | None, store: Store, rank: int, size: int, token: str, seconds: float
) -> SharedMemory | Said:
    """The memory, or why there is none."""
    if library is None:
        raise ValueError("A member without the library refuses before.")
    try:
        return _attach(library, store, rank, size, token, seconds)
    except RankError as error:
        return error.said
    except OSError as error:
        return system_words(error)


def _attach(
    library: ctypes.CDLL, store: Store, rank: int, size: int, token: str, seconds: float
) -> SharedMemory:
    # An abstract name: no file to remove, and seen only within its network namespace.
    name = f"tandem-{secrets.token_hex(16)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen(size)
        introductions = Introductions(store, rank, size, token, ATTACH_SECONDS)
        sockets = introductions.meet(listener, name, _connect)
    length = library.tandem_bytes(size)
    with ExitStack() as met:
        for sock in sockets.values():
            met.enter_context(sock)
        descriptor = _hand_out(sockets, length) if rank == 0 else _take(sockets[0], length)
        try:
            memory = mmap.mmap(descriptor, length)
        finally:
            os.close(descriptor)
        met.pop_all()
    return SharedMemory(library, memory, sockets, rank, seconds)


def _connect(name: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.settimeout(ATTACH_SECONDS)
        sock.connect(f"\0{name}")
    except OSError:
        sock.close()
        raise
    return sock


def _hand_out(sockets: dict[int, socket.socket], length: int) -> int:
    descriptor = os.memfd_create("tandem", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, length)
    # Nobody can pull it from under the others.
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    for sock in sockets.values():
        socket.send_fds(sock, [b"m"], [descriptor])
    return descriptor


def _take(sock: socket.socket, length: int) -> int:
    _byte, descriptors, _flags, _address = socket.recv_fds(sock, 1, 1, socket.MSG_CMSG_CLOEXEC)
    if len(descriptors) != 1 or os.fstat(descriptors[0]).st_size != length:
        raise RankError(_("Rank 0 of the group handed out no memory of the right size."))
    return descriptors[0]
