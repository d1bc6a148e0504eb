"""From a step's rows to the tensors the model computes on."""

from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from engine.config import BLOCK_SIZE
from engine.layers import AttentionGroup, StepInputs


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


def build_batch(rows: list[BatchRow], kv_group_size: int, padding_block: int) -> Batch:
    """Lay rows out: decode rows first, shortest to longest, then prefill rows one by one."""
    order = sorted(range(len(rows)), key=lambda i: (len(rows[i].tokens) > 1, rows[i].width))
    ordered = [rows[i] for i in order]
    positions = [range(row.start, row.stop) for row in ordered]
    slots = [_slot(row, position) for row in ordered for position in range(row.start, row.stop)]
    ends = torch.tensor([len(row.tokens) for row in ordered]).cumsum(0) - 1
    sampled = [place for place, row in enumerate(ordered) if row.sample]
    inputs = StepInputs(
        tokens=torch.tensor(list(chain.from_iterable(row.tokens for row in ordered))),
        positions=torch.tensor(list(chain.from_iterable(positions))),
        slots=torch.tensor(slots),
        groups=_groups(ordered, kv_group_size, padding_block),
        sampled=ends[torch.tensor(sampled, dtype=torch.int64)],
    )
    return Batch(inputs, [order[place] for place in sampled])


def _slot(row: BatchRow, position: int) -> int:
    return row.blocks[position // BLOCK_SIZE] * BLOCK_SIZE + position % BLOCK_SIZE


def _groups(rows: list[BatchRow], kv_group_size: int, padding_block: int) -> list[AttentionGroup]:
    groups: list[AttentionGroup] = []
    start = 0
    for bundle in _bundles(rows):
        groups.append(_group(bundle, start, kv_group_size, padding_block))
        start += len(bundle) * len(bundle[0].tokens)
    return groups


def _bundles(rows: list[BatchRow]) -> list[list[BatchRow]]:
    """Decode rows together while none is padded to more than twice its length; others alone."""
    bundles: list[list[BatchRow]] = []
    for row in rows:
        last = bundles[-1] if bundles else None
        if last and len(row.tokens) == 1 and row.width <= 2 * max(4, last[0].width):
            last.append(row)
        else:
            bundles.append([row])
    return bundles


def _group(
    rows: list[BatchRow], start: int, kv_group_size: int, padding_block: int
) -> AttentionGroup:
    width = max(row.width for row in rows)
    padding = [padding_block] * width
    tables = [(row.blocks[: row.width] + padding)[:width] for row in rows]
    return AttentionGroup(
        start=start,
        rows=len(rows),
        queries=len(rows[0].tokens),
        tables=torch.tensor(tables).view(-1),
        mask=_mask(rows, width * BLOCK_SIZE, kv_group_size),
    )


def _mask(rows: list[BatchRow], length: int, kv_group_size: int) -> Tensor:
    """0 where a query may look, -inf elsewhere; one line a query head of the KV group."""
    positions = torch.tensor([list(range(row.start, row.stop)) for row in rows])
    queries = positions.repeat_interleave(kv_group_size, dim=1).unsqueeze(2)
    hidden = torch.arange(length) > queries
    return torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf")).unsqueeze(1)
