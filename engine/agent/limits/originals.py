"""What accelerators were set to before a limit: on disk, so that a crash does not make it last."""

import os
from pathlib import Path

import msgspec

FILE = "limits.json"


class Original(msgspec.Struct):
    """Of one device; what was not changed is not there."""

    power_milliwatts: int | None = None
    clock_locked: bool = False
    """By us. A clock that somebody else had locked cannot be read, so it is freed afterwards."""


class Originals:
    """By the device's UUID. Written down before anything is changed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._known = self._load()

    def __bool__(self) -> bool:
        return bool(self._known)

    def of(self, uuid: str) -> Original:
        return self._known.get(uuid, Original())

    def keep(self, uuid: str, original: Original) -> None:
        """Raises OSError when it cannot be written; then nothing may be changed."""
        known = {name: value for name, value in self._known.items() if name != uuid}
        self._write(known if original == Original() else known | {uuid: original})

    def _load(self) -> dict[str, Original]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Original])
        except (FileNotFoundError, msgspec.MsgspecError):  # Cut short: nothing was changed yet.
            return {}

    def _write(self, known: dict[str, Original]) -> None:
        beside = self._path.with_suffix(".new")
        with beside.open("wb") as file:
            file.write(msgspec.json.encode(known))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
        self._known = known
