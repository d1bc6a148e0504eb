"""From a step's rows to the tensors the model computes on."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import torch
from torch import Tensor

from engine.config import BLOCK_SIZE
from engine.device import upload
from engine.layers import AttentionGroup, Reach, RowTables, StepInputs
from engine.layers.attend import hidden_keys
from engine.layers.inputs import Groups


@dataclass(frozen=True)
class BatchRow:
    """One sequence's share of a step, with its whole block table."""

    tokens: list[int]
    start: int
    blocks: list[int]
    sample: bool

    @property
    def stop(self) -> int:
        return self.start + len(self.tokens)

    @property
    def width(self) -> int:
        """Blocks that hold everything up to this row's last token."""
        return -(-self.stop // BLOCK_SIZE)


@dataclass(frozen=True)
class Batch:
    inputs: StepInputs
    sampled_rows: list[int]
    """Index into the given rows of each row of logits."""
    firsts: list[int]
    """Flat index of the first token of each of the given rows."""


MASKED_AT_ONCE = 1 << 20
"""Largest mask, in queries times keys, that is made for a whole group."""
MASK_NUMBERS = 1 << 23
"""And in numbers: it has a line for each query head of a KV head, with latents for every head."""
KEYS_AT_ONCE = 1 << 13
"""Most keys, over all rows of a group, that are read from the cache in one go."""
KEYS_AT_ONCE_ON_GPU = 1 << 17
"""A GPU is busy only with more of them."""
SHORTEST_PIECE = 64
"""A prompt is not cut into shorter pieces for sliding layers, however small their window."""


def build_batch(rows: list[BatchRow], reach: Reach) -> Batch:
    """Lay rows out: decode rows first, shortest to longest, then prefill rows one by one."""
    order = sorted(range(len(rows)), key=lambda i: (len(rows[i].tokens) > 1, rows[i].width))
    ordered = [rows[i] for i in order]
    positions = [range(row.start, row.stop) for row in ordered]
    slots = [slot_of(row, position) for row in ordered for position in range(row.start, row.stop)]
    ends = torch.tensor([len(row.tokens) for row in ordered]).cumsum(0) - 1
    sampled = [place for place, row in enumerate(ordered) if row.sample]
    starts = ends - torch.tensor([len(row.tokens) - 1 for row in ordered])
    inputs = StepInputs(
        tokens=torch.tensor(list(chain.from_iterable(row.tokens for row in ordered))),
        positions=torch.tensor(list(chain.from_iterable(positions))),
        slots=torch.tensor(slots),
        rows=_row_tables(ordered, starts),
        sampled=ends[torch.tensor(sampled, dtype=torch.int64)],
        bundle=partial(_all_groups, ordered, reach),
    )
    by_row = sorted(zip(order, starts.tolist(), strict=True))
    inputs = inputs.on(reach.device)
    return Batch(inputs, [order[place] for place in sampled], [first for _row, first in by_row])


def _row_tables(rows: list[BatchRow], firsts: Tensor) -> RowTables:
    widths = torch.tensor([row.width for row in rows])
    return RowTables(
        firsts=firsts,
        starts=torch.tensor([row.start for row in rows]),
        counts=torch.tensor([len(row.tokens) for row in rows]),
        offsets=widths.cumsum(0) - widths,
        tables=torch.tensor(list(chain.from_iterable(row.blocks[: row.width] for row in rows))),
    )


def slot_of(row: BatchRow, position: int) -> int:
    return row.blocks[position // BLOCK_SIZE] * BLOCK_SIZE + position % BLOCK_SIZE


def _all_groups(rows: list[BatchRow], reach: Reach) -> Groups:
    """For the layers that see everything, and for the sliding ones. While no row is longer than
    the window they are the same."""
    window = reach.window
    if window is None:
        return _groups(rows, reach, None), []
    if all(row.stop <= window for row in rows):
        groups = _groups(rows, reach, None)
        return groups, groups
    return _groups(rows, reach, None) if reach.full else [], _groups(rows, reach, window)


def _groups(rows: list[BatchRow], reach: Reach, window: int | None) -> list[AttentionGroup]:
    groups: list[AttentionGroup] = []
    start = 0
    if window is not None:
        rows = [piece for row in rows for piece in _pieces(row, max(window, SHORTEST_PIECE))]
    for bundle in _bundles(rows, window):
        groups.append(_group(bundle, start, reach, window))
        start += groups[-1].tokens
    return groups


def _pieces(row: BatchRow, length: int) -> Iterator[BatchRow]:
    """A row for a sliding layer, cut so that no query is held against many keys it cannot see."""
    for first in range(0, len(row.tokens), length):
        yield replace(row, tokens=row.tokens[first : first + length], start=row.start + first)


def _bundles(rows: list[BatchRow], window: int | None) -> list[list[BatchRow]]:
    """Rows together that have as many queries, while none is padded to more than twice its
    length. Without a window only decode rows: prompts are alone."""
    bundles: list[list[BatchRow]] = []
    for row in rows:
        first = bundles[-1][0] if bundles else None
        alike = first is not None and len(row.tokens) == len(first.tokens)
        if first and alike and (window or len(row.tokens) == 1) and _near(row, first, window):
            bundles[-1].append(row)
        else:
            bundles.append([row])
    return bundles


def _near(row: BatchRow, first: BatchRow, window: int | None) -> bool:
    return _width(row, window) <= 2 * max(4, _width(first, window))


def first_block(row: BatchRow, window: int | None) -> int:
    """Where the row's table begins: at the block with the oldest key its first query may see."""
    return 0 if window is None else max(0, row.start - window + 1) // BLOCK_SIZE


def _width(row: BatchRow, window: int | None) -> int:
    return row.width - first_block(row, window)


def _group(rows: list[BatchRow], start: int, reach: Reach, window: int | None) -> AttentionGroup:
    width = max(_width(row, window) for row in rows)
    padding = [reach.padding_block] * width
    firsts = [first_block(row, window) for row in rows]
    tables = [
        (row.blocks[first : row.width] + padding)[:width]
        for row, first in zip(rows, firsts, strict=True)
    ]
    host = (
        torch.tensor(tables).view(-1),
        torch.tensor([list(range(row.start, row.stop)) for row in rows]),
        torch.tensor(firsts) * BLOCK_SIZE,
    )
    there, positions, offsets = upload(host, reach.device)
    group = AttentionGroup(
        start=start,
        rows=len(rows),
        queries=len(rows[0].tokens),
        tables=there,
        positions=positions,
        offsets=offsets,
        window=window,
        mask=None,
    )
    keys = group.rows * width * BLOCK_SIZE
    scores = keys * group.queries
    large = scores > MASKED_AT_ONCE or scores * reach.group_size > MASK_NUMBERS
    most_keys = KEYS_AT_ONCE if reach.device.type == "cpu" else KEYS_AT_ONCE_ON_GPU
    if keys > most_keys or large:
        return group
    return replace(group, mask=mask_of(group, width * BLOCK_SIZE, reach.group_size))


def mask_of(group: AttentionGroup, length: int, group_size: int) -> Tensor:
    """0 where a query may look, -inf elsewhere; one line a query head of the KV group."""
    hidden = hidden_keys(group, 0, length).repeat_interleave(group_size, dim=1)
    zeros = torch.zeros(hidden.shape, device=hidden.device)
    return zeros.masked_fill_(hidden, float("-inf")).unsqueeze(1)
