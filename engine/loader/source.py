"""Where a model takes its weights from: slices of a verified checkpoint.

Each slice is read with `pread` into one reused buffer and decoded chunk by chunk; the pages read
are given back to the system, so a load never holds the file and the weights at once (which on a
unified-memory box would double the footprint).
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

import torch
from torch import Tensor

from engine.checkpoint import Checkpoint, Piece, Stored, TensorInfo
from engine.device import CPU
from engine.errors import CheckpointError, system_words
from engine.errors import gettext_noop as _
from engine.loader.dequantize import dequantize
from engine.spans import Span

CHUNK_BYTES = 1 << 20
ROW_UNIT = 64
"""Parts of a matrix are whole multiples of this many rows, which is what kernels like."""

Progress = Callable[[float, str], None]
"""Called with the fraction of the rank's tensors read (0..1) and what was just read."""


class WeightSource:
    """Reads each wanted tensor once; `finish` fails when one was left unread."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        wanted: set[str],
        progress: Progress,
        device: torch.device = CPU,
    ) -> None:
        """What is read is handed out on `device`."""
        self._device = device
        self._name = checkpoint.path.name
        self._tensors = checkpoint.tensors
        self._unread = set(wanted)
        self._count = max(1, len(wanted))
        self._progress = progress
        self._buffer = bytearray(0)
        self._open: dict[Path, int] = {}

    def __enter__(self) -> "WeightSource":
        self._buffer = bytearray(CHUNK_BYTES)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._open:
            os.close(self._open.popitem()[1])
        self._buffer = bytearray(0)

    def vector(self, name: str) -> Tensor:
        """A whole 1-D tensor, float32."""
        info = self._claim(name, 1)
        assert isinstance(info, TensorInfo)  # only matrices are stacked
        out = torch.empty(info.columns)
        self._read(info, Span(0, 1), Span(0, info.columns), out.unsqueeze(0))
        return out.to(self._device)

    def rows(self, name: str, span: Span) -> Tensor:
        """Rows of a matrix, float32 (span.size, columns)."""
        info = self._claim(name, 2)
        out = torch.empty(span.size, info.columns)
        self._fill(info, span, Span(0, info.columns), out)
        return out.to(self._device)

    def columns(self, name: str, span: Span) -> Tensor:
        """Columns of a matrix, float32 (rows, span.size)."""
        info = self._claim(name, 2)
        out = torch.empty(info.shape[0], span.size)
        self._fill(info, Span(0, info.shape[0]), span, out)
        return out.to(self._device)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._tensors[name].shape

    def stack(
        self, names: Sequence[str], rows: Span | None = None, columns: Span | None = None
    ) -> Tensor:
        """One slice of several matrices of one shape, one below the other, float32.

        Each is read to its place, so nothing is ever there twice.
        """
        infos = [self._claim(name, 2) for name in names]
        rows, columns = _slice(infos[0], rows, columns)
        out = torch.empty(len(infos) * rows.size, columns.size)
        for info, part in zip(infos, out.chunk(len(infos)), strict=True):
            self._fill(info, rows, columns, part)
        return out.to(self._device)

    def in_parts(
        self, names: Sequence[str], rows: Span | None, columns: Span | None, most_bytes: int
    ) -> Iterator[Tensor]:
        """The same in parts of at most `most_bytes`, each read when it is asked for."""
        for name in names:
            info = self._claim(name, 2)
            high, wide = _slice(info, rows, columns)
            step = max(ROW_UNIT, most_bytes // (4 * wide.size) // ROW_UNIT * ROW_UNIT)
            for first in range(high.start, high.stop, step):
                part = Span(first, min(first + step, high.stop))
                out = torch.empty(part.size, wide.size)
                self._fill(info, part, wide, out)
                yield out.to(self._device)

    def finish(self) -> None:
        """Raise CheckpointError when the model left a tensor of its share unread."""
        if self._unread:
            raise CheckpointError(
                _("%(file)s: tensor %(tensor)r belongs to this rank but was not used."),
                file=self._name,
                tensor=min(self._unread),
            )

    def _claim(self, name: str, dimensions: int) -> Stored:
        if name not in self._unread:
            raise CheckpointError(
                _("%(file)s: tensor %(tensor)r was asked for twice or is not this rank's."),
                file=self._name,
                tensor=name,
            )
        self._unread.remove(name)
        self._progress(1 - len(self._unread) / self._count, name)
        info = self._tensors[name]
        if len(info.shape) != dimensions:
            raise CheckpointError(
                _("%(file)s: tensor %(tensor)r has %(dimensions)s dimensions."),
                file=self._name,
                tensor=name,
                dimensions=len(info.shape),
            )
        return info

    def _fill(self, info: Stored, rows: Span, columns: Span, out: Tensor) -> None:
        """Fill `out` (rows.size, columns.size) from one piece or from those that `rows` meets."""
        if isinstance(info, TensorInfo):
            self._read(info, rows, columns, out)
            return
        top = 0
        for piece in info.pieces:
            first, last = max(rows.start, top), min(rows.stop, top + piece.rows)
            if first < last:
                part = out[first - rows.start : last - rows.start]
                self._read_piece(piece, Span(first - top, last - top), columns, part)
            top += piece.rows

    def _read_piece(self, piece: Piece, rows: Span, columns: Span, out: Tensor) -> None:
        if not piece.transposed:
            self._read(piece.info, rows, columns, out)
            return
        turned = torch.empty(columns.size, rows.size)
        self._read(piece.info, columns, rows, turned)
        out.copy_(turned.T)

    def _read(self, info: TensorInfo, rows: Span, columns: Span, out: Tensor) -> None:
        """Fill `out` (rows.size, columns.size) from the blocks that cover the slice."""
        width = info.format.elements
        blocks = Span(columns.start // width, -(-columns.stop // width))
        stride = blocks.size * info.format.bytes
        skipped = columns.start - blocks.start * width
        batch = max(1, CHUNK_BYTES // stride)
        if stride > len(self._buffer):
            self._buffer = bytearray(stride)
        for first in range(rows.start, rows.stop, batch):
            count = min(batch, rows.stop - first)
            raw = self._fetch(info, first, count, blocks)
            decoded = dequantize(info.format.name, raw.view(-1, info.format.bytes))
            at = first - rows.start
            out[at : at + count] = decoded.view(count, -1)[:, skipped : skipped + columns.size]

    def _fetch(self, info: TensorInfo, first: int, count: int, blocks: Span) -> Tensor:
        """Raw bytes of `blocks` in `count` rows from row `first`, as a view of the buffer."""
        file = self._file(info.path)
        stride = blocks.size * info.format.bytes
        start = info.offset + first * info.row_bytes + blocks.start * info.format.bytes
        view = memoryview(self._buffer)[: count * stride]
        if stride == info.row_bytes:
            self._pread(file, view, start, info)
        else:
            for row in range(count):
                piece = view[row * stride : (row + 1) * stride]
                self._pread(file, piece, start + row * info.row_bytes, info)
        os.posix_fadvise(file, start, count * info.row_bytes, os.POSIX_FADV_DONTNEED)
        return torch.frombuffer(self._buffer, dtype=torch.uint8, count=count * stride)

    def _file(self, path: Path) -> int:
        if path not in self._open:
            try:
                self._open[path] = os.open(path, os.O_RDONLY)
            except OSError as error:
                raise CheckpointError(
                    _("Cannot open %(path)s: %(reason)s."),
                    path=str(path),
                    reason=system_words(error),
                ) from error
        return self._open[path]

    def _pread(self, file: int, view: memoryview, offset: int, info: TensorInfo) -> None:
        while view:
            count = os.preadv(file, [view], offset)
            if not count:
                raise CheckpointError(
                    _("%(file)s became shorter while tensor %(tensor)r was being read."),
                    file=info.path.name,
                    tensor=info.name,
                )
            view = view[count:]
            offset += count


def _slice(info: Stored, rows: Span | None, columns: Span | None) -> tuple[Span, Span]:
    return rows or Span(0, info.shape[0]), columns or Span(0, info.shape[1])
