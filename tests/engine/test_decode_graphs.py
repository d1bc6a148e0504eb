"""Decode steps by bucket give what they give step by step; here without a GPU, so that "captured"
work is simply done again on the numbers that are then in its memory."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.config import BLOCK_SIZE, EngineConfig
from engine.models import Decoder
from engine.runner.batch import BatchRow, build_batch
from engine.runner.decoding import DecodeGraphs, Work, can_capture, decode_graphs
from engine.runner.graphs import FEWEST_BLOCKS, Bucket, Buckets, Graphs
from tests.engine.hf_models import write_hf_model
from tests.engine.local_runner import load_alone

CONFIG = EngineConfig(kv_cache_tokens=1024, max_batch_size=8)


class Captures:
    """Counts captures; to play one is to do the work again."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, work: Work) -> Work:
        self.count += 1
        return work


@given(st.integers(1, 300), st.integers(1, 256), st.integers(1, 5000))
def test_a_bucket_holds_its_step_and_is_not_twice_as_large(
    most: int, rows: int, blocks: int
) -> None:
    buckets = Buckets(most, 1 << 13)
    bucket = buckets.of(rows, blocks)
    if bucket is None:
        assert rows > most or 2 * rows * 2 * max(blocks, FEWEST_BLOCKS) > 1 << 13
        return
    assert rows <= bucket.rows < 2 * rows
    assert blocks <= bucket.blocks < 2 * max(blocks, FEWEST_BLOCKS)
    assert bucket.rows in buckets.row_counts()


def test_captures_are_made_once_and_the_oldest_goes_first() -> None:
    made: list[Bucket] = []

    def capture(bucket: Bucket) -> int:
        made.append(bucket)
        return len(made)

    graphs = Graphs(capture, most=2)
    one, two, three = (Bucket(rows, 16) for rows in (1, 2, 4))
    assert [graphs[one], graphs[two], graphs[one], graphs[three]] == [1, 2, 1, 3]
    assert graphs[one] == 1
    assert len(graphs) == 2
    assert graphs[two] == 4
    assert made == [one, two, three, two]


@pytest.fixture(scope="module", params=["llama", "qwen3", "gemma3"])
def decoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    folder = tmp_path_factory.mktemp(request.param)
    write_hf_model(folder, request.param, seed=0)
    return load_alone(folder, CONFIG)


def filled(decoder: Decoder, lengths: list[int]) -> list[BatchRow]:
    """A decode row after prompts of these lengths, whose keys are in the cache."""
    free = iter(range(decoder.cache.num_blocks))
    rows: list[BatchRow] = []
    for index, length in enumerate(lengths):
        blocks = [next(free) for _ in range(length // BLOCK_SIZE + 1)]
        prompt = [(7 * place + index) % 200 + 3 for place in range(length)]
        decoder.hidden(build_batch([BatchRow(prompt, 0, blocks, False)], decoder.reach).inputs)
        rows.append(BatchRow([9 + index], length, blocks, True))
    return rows


def step_by_step(decoder: Decoder, rows: list[BatchRow]) -> torch.Tensor:
    batch = build_batch(rows, decoder.reach)
    hidden = decoder.hidden(batch.inputs)
    assert hidden is not None
    return hidden[batch.firsts]


@pytest.mark.parametrize("lengths", [[5], [40, 3, 17], [100, 90, 1, 30, 64]])
def test_a_padded_step_gives_the_same(decoder: Decoder, lengths: list[int]) -> None:
    rows, captures = filled(decoder, lengths), Captures()
    graphs = DecodeGraphs(decoder, 8, captures)
    expected = step_by_step(decoder, rows)
    for _again in range(2):
        found = graphs.hidden(rows)
        assert found is not None
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert captures.count == len(graphs) == 1


def test_one_capture_serves_other_rows_of_its_bucket(decoder: Decoder) -> None:
    rows, captures = filled(decoder, [40, 3, 17, 60]), Captures()
    graphs = DecodeGraphs(decoder, 8, captures)
    assert graphs.hidden(rows) is not None
    for chosen in (rows[1:], rows[::-1], [rows[3], rows[0], rows[2]]):
        found = graphs.hidden(chosen)
        assert found is not None
        torch.testing.assert_close(found, step_by_step(decoder, chosen), rtol=1e-4, atol=1e-5)
    assert captures.count == 1


def test_padding_writes_to_no_other_block(decoder: Decoder) -> None:
    rows = filled(decoder, [40, 3, 17])
    step_by_step(decoder, rows)
    before = [part.clone() for layer in (0,) for part in decoder.cache.stored(layer)[0]]
    DecodeGraphs(decoder, 8, Captures()).hidden(rows)
    for part, kept in zip(decoder.cache.stored(0)[0], before, strict=True):
        torch.testing.assert_close(part, kept, rtol=1e-4, atol=1e-5)
        assert not part[decoder.cache.padding_block].any()


def test_prompts_and_steps_too_large_are_left_to_others(decoder: Decoder) -> None:
    rows, graphs = filled(decoder, [5, 9]), DecodeGraphs(decoder, 1, Captures())
    assert graphs.hidden(rows) is None
    assert graphs.hidden([BatchRow([5, 6], 0, [0], True)]) is None


def test_a_processor_captures_nothing(decoder: Decoder) -> None:
    assert can_capture(decoder)
    assert decode_graphs(decoder, 8) is None


def test_experts_are_not_captured(tmp_path: Path) -> None:
    write_hf_model(tmp_path, "mixtral", seed=0)
    assert not can_capture(load_alone(tmp_path, CONFIG))
