"""Opening a checkpoint's files: only plain ones, and nothing that could wait for ever."""

import json
import os
import stat
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import Any

from engine.errors import CheckpointError, system_words
from engine.errors import gettext_noop as _


def opened(path: Path) -> FileIO:
    """Raises CheckpointError for what is missing, unreadable or no plain file."""
    try:
        file = FileIO(path, opener=_without_waiting)
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have
        reason = system_words(error) if isinstance(error, OSError) else str(error)
        raise CheckpointError(
            _("Cannot open %(path)s: %(reason)s."), path=str(path), reason=reason
        ) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise CheckpointError(_("%(path)s is not a file but a device or a pipe."), path=str(path))
    return file


def _without_waiting(path: str, flags: int) -> int:
    """Opening a pipe would wait for its writer, for ever if need be."""
    return os.open(path, flags | os.O_NONBLOCK)


def is_folder(path: Path) -> bool:
    """False for what cannot be looked at too; opening it then says why."""
    return os.path.isdir(path)


def is_there(path: Path) -> bool:
    return os.path.exists(path)


def size_of(path: Path) -> int:
    with opened(path) as file:
        return os.fstat(file.fileno()).st_size


def names_in(folder: Path) -> list[str]:
    """Sorted."""
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise CheckpointError(
            _("Cannot open %(path)s: %(reason)s."), path=str(folder), reason=system_words(error)
        ) from error


def read_text(path: Path, limit: int) -> str:
    """A whole UTF-8 file of at most `limit` bytes."""
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise CheckpointError(
                _("%(file)s is %(size)s bytes long; the limit is %(limit)s."),
                file=path.name,
                size=size,
                limit=limit,
            )
        return decoded(path.name, file.read(limit))


def decoded(name: str, raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(_("%(file)s is not valid UTF-8."), file=name) from error


def read_object(path: Path, limit: int) -> dict[str, Any]:
    """A JSON file whose outermost value is an object."""
    return parse_object(path.name, read_text(path, limit))


def parse_object(name: str, text: str) -> dict[str, Any]:
    """Strict JSON: no name twice in one object, no NaN. `name` is for messages."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            _("%(file)s is not valid JSON: %(error)s."), file=name, error=str(error)
        ) from error
    if not isinstance(value, dict):
        raise CheckpointError(_("%(file)s does not hold a JSON object."), file=name)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"{key!r} appears twice")
        result[key] = value
    return result


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")
