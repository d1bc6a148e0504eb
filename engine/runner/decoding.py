"""Decode steps on a GPU, captured once for each shape and played again.

A step of a small model is hundreds of kernels of a few microseconds, whose launches would take
longer than they do. A capture reads its numbers from memory that stays where it is, so all that a
step costs the host is to fill that and to say "play".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from engine.config import BLOCK_SIZE
from engine.layers import Attention, AttentionGroup, GatedMLP, Reach, RowTables, StepInputs
from engine.models import Decoder
from engine.runner.batch import BatchRow, first_block, mask_of, slot_of
from engine.runner.graphs import Bucket, Buckets, Graphs

Work = Callable[[], Tensor]
Capture = Callable[[Work], Work]
"""From work to what does the same work again, on the numbers that are then in its memory."""

MOST_BLOCKS = (1 << 17) // BLOCK_SIZE
"""Blocks that a captured step gathers, over all its rows; larger ones keep a GPU busy anyway."""
MOST_GRAPHS = 48
WARM_UP_RUNS = 2
"""Libraries choose their kernels, and take their workspaces, at first use and never in a
capture."""


@dataclass(frozen=True)
class Layout:
    """Where a step's numbers are in one int64 tensor: of each row its token, position and slot,
    then its block tables, whole and for the window, and where the latter begin."""

    bucket: Bucket
    reach: Reach

    @property
    def window_blocks(self) -> int:
        """Width of a sliding layer's table; 0 where there are no such layers."""
        window = self.reach.window
        return 0 if window is None else min(self.bucket.blocks, window // BLOCK_SIZE + 2)

    @property
    def sizes(self) -> tuple[int, ...]:
        rows = self.bucket.rows
        tables = rows * self.bucket.blocks, rows * self.window_blocks
        return (rows, rows, rows, *tables, rows)

    def numbers(self, rows: Sequence[BatchRow]) -> Tensor:
        """Of one step, on the host. Rows that are missing repeat the last: what they write is
        what it writes, and nobody reads what they give."""
        whole = [*rows, *[rows[-1]] * (self.bucket.rows - len(rows))]
        firsts = [first_block(row, self.reach.window) for row in whole]
        parts = [
            [row.tokens[0] for row in whole],
            [row.start for row in whole],
            [slot_of(row, row.start) for row in whole],
            *(self._table(row, 0, self.bucket.blocks) for row in whole),
            *(
                self._table(row, first, self.window_blocks)
                for row, first in zip(whole, firsts, strict=True)
            ),
            [first * BLOCK_SIZE for first in firsts],
        ]
        return torch.tensor([number for part in parts for number in part])

    def inputs(self, numbers: Tensor) -> StepInputs:
        """A step that reads `numbers`; what else it needs is worked out from them where they
        are."""
        tokens, positions, slots, tables, near, offsets = torch.split(numbers, list(self.sizes))
        places = torch.arange(self.bucket.rows, device=numbers.device)
        full = self._group(tables, positions, torch.zeros_like(positions), None)
        window = self.reach.window
        sliding = None if window is None else self._group(near, positions, offsets, window)
        rows = RowTables(places, positions, torch.ones_like(places), places, tables)
        groups = [full] if self.reach.full else [], [sliding] if sliding else []
        return StepInputs(tokens, positions, slots, rows, places, lambda: groups)

    def _group(
        self, tables: Tensor, positions: Tensor, offsets: Tensor, window: int | None
    ) -> AttentionGroup:
        rows = self.bucket.rows
        group = AttentionGroup(
            start=0,
            rows=rows,
            queries=1,
            tables=tables,
            positions=positions.view(rows, 1),
            offsets=offsets,
            window=window,
            mask=None,
        )
        keys = len(tables) // rows * BLOCK_SIZE
        return replace(group, mask=mask_of(group, keys, self.reach.group_size))

    def _table(self, row: BatchRow, first: int, width: int) -> list[int]:
        padding = [self.reach.padding_block] * width
        return (row.blocks[first : row.width] + padding)[:width]


class Captured:
    """A decoder's work for one bucket, with the memory that it reads its step from."""

    def __init__(
        self, decoder: Decoder, layout: Layout, rows: Sequence[BatchRow], capture: Capture
    ) -> None:
        """`rows` are a step of this shape: what is computed while capturing is that step."""
        self._layout = layout
        self._numbers = layout.numbers(rows).to(decoder.reach.device)
        self._play = capture(lambda: _hidden(decoder, layout.inputs(self._numbers)))

    def __call__(self, rows: Sequence[BatchRow]) -> Tensor:
        """Hidden states (rows, hidden), overwritten by the next call."""
        numbers = self._layout.numbers(rows)
        pinned = self._numbers.is_cuda
        self._numbers.copy_(numbers.pin_memory() if pinned else numbers, non_blocking=pinned)
        return self._play()[: len(rows)]


class DecodeGraphs:
    """Every decode step of one decoder that can be captured."""

    def __init__(self, decoder: Decoder, most_rows: int, capture: Capture) -> None:
        self.buckets = Buckets(most_rows, MOST_BLOCKS)
        self._decoder = decoder
        self._capture = capture
        self._rows: Sequence[BatchRow] = ()
        self._graphs = Graphs(self._make, MOST_GRAPHS)

    def hidden(self, rows: Sequence[BatchRow]) -> Tensor | None:
        """Hidden states of each row's token, in order; None for a step that has no capture."""
        if any(len(row.tokens) != 1 for row in rows):
            return None
        bucket = self.buckets.of(len(rows), max((row.width for row in rows), default=0))
        if bucket is None:
            return None
        self._rows = rows
        return self._graphs[bucket](rows)

    def __len__(self) -> int:
        return len(self._graphs)

    def _make(self, bucket: Bucket) -> Captured:
        layout = Layout(bucket, self._decoder.reach)
        return Captured(self._decoder, layout, self._rows, self._capture)


def decode_graphs(decoder: Decoder, most_rows: int) -> DecodeGraphs | None:
    """None on processors, and where a step cannot be captured."""
    device = decoder.reach.device
    if device.type != "cuda" or not can_capture(decoder):
        return None
    return DecodeGraphs(decoder, most_rows, cuda_capture(device))


def can_capture(decoder: Decoder) -> bool:
    """Whether a step is the same kernels whatever its numbers: experts ask the host how many
    tokens each has, capped scores go part by part, and other ranks are waited for."""
    alone = decoder.mesh.tp.size == decoder.mesh.pipeline.size == 1
    return alone and all(
        isinstance(layer.attention, Attention)
        and layer.attention.attend.softcap is None
        and isinstance(layer.mlp, GatedMLP)
        for layer in decoder.layers
    )


def cuda_capture(device: torch.device) -> Capture:
    """CUDA graphs that share one pool of memory: only one plays at a time."""
    pool = torch.cuda.graph_pool_handle()

    def capture(work: Work) -> Work:
        side: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch's gap
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _run in range(WARM_UP_RUNS):
                work()
        torch.cuda.current_stream(device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # Other threads of a rank talk to its head; none of their calls belongs in here.
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            result = work()

        def play() -> Tensor:
            graph.replay()
            return result

        return play

    return capture


def _hidden(decoder: Decoder, inputs: StepInputs) -> Tensor:
    hidden = decoder.hidden(inputs)
    assert hidden is not None  # of the only stage
    return hidden
