"""A GGUF header's metadata by key."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.checkpoint.files import opened
from engine.checkpoint.gguf.cursor import Cursor
from engine.checkpoint.gguf.header import ArrayPlace, Header, Value, read_array


class Metadata(Mapping[str, Value]):
    """Arrays are read from the file when first asked for."""

    def __init__(self, path: Path, header: Header) -> None:
        self._path = path
        self._values = header.values
        self._arrays: dict[str, Value] = {}

    def __getitem__(self, key: str) -> Value:
        value = self._values[key]
        if not isinstance(value, ArrayPlace):
            return value
        if key not in self._arrays:
            with opened(self._path) as file:
                cursor = Cursor(file.fileno(), self._path, value.offset)
                self._arrays[key] = read_array(cursor, key, value)
        return self._arrays[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def length(self, key: str) -> int:
        """Items of an array, without reading it; 0 when there is none."""
        value = self._values.get(key)
        return value.count if isinstance(value, ArrayPlace) else 0
