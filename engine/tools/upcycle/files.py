"""Writes large files with little memory, and shows them only once they are whole."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from engine.errors import CheckpointError, ConfigError
from engine.errors import gettext_noop as _

COPY_BYTES = 4 << 20


class Part(msgspec.Struct, frozen=True):
    """A stretch of a file."""

    path: Path
    offset: int
    nbytes: int


Piece = Part | bytes


def size_of(pieces: list[Piece]) -> int:
    return sum(piece.nbytes if isinstance(piece, Part) else len(piece) for piece in pieces)


def write_piece(out: BinaryIO, piece: Piece) -> None:
    """Append bytes, or a stretch of another file, a few megabytes at a time."""
    if isinstance(piece, bytes):
        out.write(piece)
        return
    with piece.path.open("rb") as file:
        file.seek(piece.offset)
        left = piece.nbytes
        while left:
            chunk = file.read(min(left, COPY_BYTES))
            if not chunk:
                raise CheckpointError(
                    _("%(file)s became shorter while it was being read."), file=piece.path.name
                )
            out.write(chunk)
            left -= len(chunk)


def check_room(target: Path, needed: int) -> None:
    """Raise ConfigError when `needed` bytes do not fit beside `target`."""
    free = shutil.disk_usage(target.parent).free
    if needed > free:
        raise ConfigError(
            _("%(path)s needs %(needed)s MB, but only %(free)s MB are free there."),
            path=str(target),
            needed=-(-needed // 10**6),
            free=free // 10**6,
        )


def check_target(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise ConfigError(
            _("%(path)s already exists; choose another name or remove it."), path=str(target)
        )
    if not target.parent.is_dir():
        raise ConfigError(_("There is no folder %(path)s."), path=str(target.parent))


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """A hidden name beside `target`, given its own when the block ends well and removed if not.

    Whoever comes while another is at it waits, and is told then that `target` exists.
    """
    hidden = target.with_name(f".{target.name}.unfinished")
    with _alone_in(target.parent):
        check_target(target)
        _remove(hidden)
        try:
            yield hidden
            os.replace(hidden, target)
        finally:
            _remove(hidden)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def durable(path: Path) -> Iterator[BinaryIO]:
    """A new file whose content is on the disk when the block ends."""
    with path.open("xb") as out:
        yield out
        out.flush()
        os.fsync(out.fileno())
