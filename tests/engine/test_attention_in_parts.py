"""Attention over paged keys equals the textbook's, whatever its length, window, cap or batch."""

from collections.abc import Iterator
from itertools import accumulate

import pytest
import torch
from torch import Tensor

from engine.config import BLOCK_SIZE
from engine.layers import Attend, AttentionGroup, KVCache, Reach, StepInputs
from engine.layers.attend import hidden_keys, hide
from engine.runner.batch import BatchRow, build_batch

KV_HEADS, GROUP, WIDTH = 2, 3, 8
SCALE = 0.3


class Filled:
    """A cache of random keys and values, and sequences scattered over its blocks."""

    def __init__(self, lengths: list[int]) -> None:
        generator = torch.Generator().manual_seed(sum(lengths))
        counts = [-(-length // BLOCK_SIZE) for length in lengths]
        order = torch.randperm(sum(counts), generator=generator).tolist()
        ends = list(accumulate(counts))
        self.tables = [order[end - count : end] for end, count in zip(ends, counts, strict=True)]
        self.cache = KVCache(1, len(order), KV_HEADS, WIDTH, WIDTH)
        shape = (len(order) * BLOCK_SIZE, KV_HEADS, WIDTH)
        self.keys, self.values = (torch.randn(shape, generator=generator) for _ in range(2))
        self.cache.write(0, torch.arange(len(self.keys)), self.keys, self.values)
        self.queries = torch.randn(4000, KV_HEADS * GROUP, WIDTH, generator=generator)

    def history(self, sequence: int) -> Tensor:
        """Slots of a sequence's tokens in order."""
        blocks = torch.tensor(self.tables[sequence])
        return (blocks.unsqueeze(1) * BLOCK_SIZE + torch.arange(BLOCK_SIZE)).view(-1)


def textbook(
    filled: Filled, sequence: int, query: Tensor, position: int, window: int | None, cap: float
) -> Tensor:
    """One token's attention in float64, (heads, width)."""
    first = 0 if window is None else max(0, position - window + 1)
    slots = filled.history(sequence)[first : position + 1]
    keys, values = filled.keys[slots].double(), filled.values[slots].double()
    scores = SCALE * torch.einsum("kgd,nkd->kgn", query.double().view(KV_HEADS, GROUP, WIDTH), keys)
    scores = cap * (scores / cap).tanh() if cap else scores
    return torch.einsum("kgn,nkd->kgd", scores.softmax(-1), values).reshape(-1, WIDTH)


def attend(filled: Filled, inputs: StepInputs, sliding: bool, cap: float) -> Tensor:
    layer = Attend(filled.cache, 0, SCALE, cap or None)
    groups = inputs.windowed if sliding else inputs.groups
    parts = [layer(filled.queries[g.start : g.start + g.tokens], g) for g in groups]
    return torch.cat(parts)


def rows_of(filled: Filled, shares: list[tuple[int, int]]) -> list[BatchRow]:
    """`shares`: (start, tokens) of each sequence's row."""
    pairs = zip(shares, filled.tables, strict=True)
    return [BatchRow([1] * count, start, table, True) for (start, count), table in pairs]


STEPS = {
    "decode rows of many lengths": [(0, 1), (5, 1), (70, 1), (33, 1), (300, 1), (1200, 1)],
    "a prompt's first part": [(0, 90)],
    "a prompt's later part": [(500, 90)],
    "prompts beside decode rows": [(3, 1), (200, 1), (64, 40), (0, 17)],
    "longer than is done at once": [(9000, 300), (9990, 1), (40, 1)],
}


@pytest.mark.parametrize("cap", [0.0, 1.5], ids=["uncapped", "capped"])
@pytest.mark.parametrize("window", [None, 1, 24, 500], ids=lambda window: f"window {window}")
@pytest.mark.parametrize("shares", STEPS.values(), ids=STEPS.keys())
def test_attention_is_the_textbooks(
    shares: list[tuple[int, int]], window: int | None, cap: float
) -> None:
    filled = Filled([start + count for start, count in shares])
    reach = Reach(GROUP, filled.cache.padding_block, window)
    batch = build_batch(rows_of(filled, shares), reach)
    found = attend(filled, batch.inputs, window is not None, cap)
    for place, (sequence, position) in enumerate(flat_order(filled, batch.inputs)):
        if position % 37 and position + 1 < sum(shares[sequence]):
            continue  # A sample of each prompt, and every row's last token.
        query = filled.queries[place]
        expected = textbook(filled, sequence, query, position, window, cap)
        torch.testing.assert_close(found[place].double(), expected, rtol=1e-4, atol=1e-5)


def flat_order(filled: Filled, inputs: StepInputs) -> Iterator[tuple[int, int]]:
    """Sequence and position of each token of the step, found by the slot it is written to."""
    owner = {block: index for index, table in enumerate(filled.tables) for block in table}
    for slot, position in zip(inputs.slots.tolist(), inputs.positions.tolist(), strict=True):
        yield owner[slot // BLOCK_SIZE], position


def test_a_long_history_is_never_scored_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    start, count = 40_000, 256
    filled = Filled([start + count])
    sizes: list[int] = []

    def scored(scores: Tensor, group: AttentionGroup, first: int) -> None:
        sizes.append(scores.numel())
        hide(scores, group, first)

    def masked(group: AttentionGroup, first: int, keys: int) -> Tensor:
        hidden = hidden_keys(group, first, keys)
        sizes.append(hidden.numel())
        return hidden

    monkeypatch.setattr("engine.layers.attend.hide", scored)
    monkeypatch.setattr("engine.layers.attend.hidden_keys", masked)
    monkeypatch.setattr("engine.runner.batch.hidden_keys", masked)
    reach = Reach(GROUP, filled.cache.padding_block)
    inputs = build_batch(rows_of(filled, [(start, count)]), reach).inputs
    attend(filled, inputs, sliding=False, cap=0.0)
    assert max(sizes) <= 1 << 19
    assert sum(sizes) >= count * start * KV_HEADS * GROUP


def test_a_sliding_layer_reads_only_the_blocks_of_its_window() -> None:
    shares = [(5000, 1), (70, 1), (3000, 40)]
    filled = Filled([start + count for start, count in shares])
    window = 24
    inputs = build_batch(rows_of(filled, shares), Reach(GROUP, 999, window)).inputs
    read = {int(block) for group in inputs.windowed for block in group.tables} - {999}
    needed = {
        table[position // BLOCK_SIZE]
        for (start, count), table in zip(shares, filled.tables, strict=True)
        for position in range(max(0, start - window + 1), start + count)
    }
    assert read == needed
