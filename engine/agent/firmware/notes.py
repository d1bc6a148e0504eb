"""What an agent writes down of an order, so that the next agent does not do it again."""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from engine.errors import Said
from engine.protocol.firmware import FirmwareOrder, FirmwarePhase, FirmwareState

FINAL: tuple[FirmwarePhase, ...] = ("staged", "done", "failed")


class OrderNote(msgspec.Struct, frozen=True, kw_only=True):
    order: FirmwareOrder
    phase: FirmwarePhase = "fetching"
    percent: float | None = None
    reason: Said = Said()
    boot_id: str = ""
    """When the work itself began; empty before."""

    @property
    def final(self) -> bool:
        return self.phase in FINAL

    @property
    def state(self) -> FirmwareState:
        return FirmwareState(
            id=self.order.id, phase=self.phase, percent=self.percent, reason=self.reason
        )


class Notes:
    """One file an order, replaced whole, on the disk before anything happens that it tells of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self) -> dict[int, OrderNote]:
        found: dict[int, OrderNote] = {}
        for path in self.folder.glob("*.json"):
            with suppress(OSError, msgspec.MsgspecError):  # Of another version: not ours to go on.
                note = msgspec.json.decode(path.read_bytes(), type=OrderNote)
                found[note.order.id] = note
        return found

    def write(self, note: OrderNote) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._path(note.order.id)
        fresh = path.with_suffix(".new")
        with fresh.open("wb") as file:
            file.write(msgspec.json.encode(note))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)

    def drop(self, order: int) -> None:
        self._path(order).unlink(missing_ok=True)

    def _path(self, order: int) -> Path:
        return self.folder / f"{order}.json"
