"""Gemma-3-270M, read from K-quants, continues as transformers does from the same file.

The expected ids come from tests/golden/make_golden.py; one prompt is longer than the window of the
sliding layers.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.checkpoint import open_checkpoint
from engine.config import EngineConfig
from engine.text.tokenizer import TextTokenizer
from tests.engine.gemma import cached_gemma
from tests.engine.rank_fleet import RankFleet

FOLDER = Path(__file__).parent.parent / "golden"
GOLDEN, ENCODED = FOLDER / "gemma3_270m_fp32.json", FOLDER / "gemma3_270m_ids.json"


@pytest.fixture(scope="module")
def gemma(request: pytest.FixtureRequest) -> Path:
    return cached_gemma(request.config)


@pytest.fixture(scope="module")
def golden() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(GOLDEN.read_text())
    return entries


@pytest.fixture(scope="module")
def fleet(gemma: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RankFleet]:
    config = EngineConfig(kv_cache_tokens=2048, max_model_len=2048)
    with RankFleet(gemma, config, tmp_path_factory.mktemp("ranks")) as started:
        yield started


@pytest.mark.model
def test_six_texts_are_continued_as_transformers_does(
    fleet: RankFleet, golden: list[dict[str, Any]]
) -> None:
    prompts = [entry["ids"] for entry in golden]
    assert max(len(ids) for ids in prompts) > 512
    answers = fleet.generate(prompts, tokens=48)
    for entry, answer in zip(golden, answers, strict=True):
        assert answer == entry["tokens"], entry["prompt"]


@pytest.fixture(scope="module")
def tokenizer(gemma: Path) -> TextTokenizer:
    return TextTokenizer(open_checkpoint(gemma).tokenizer)


@pytest.mark.model
def test_text_of_many_scripts_has_transformers_ids(tokenizer: TextTokenizer) -> None:
    for entry in json.loads(ENCODED.read_text()):
        assert tokenizer.encode(entry["text"]) == entry["ids"], entry["text"]
        assert tokenizer.decode(entry["ids"]) == entry["text"]


@pytest.mark.model
def test_control_tokens_are_letters_and_the_end_of_a_turn_stops(tokenizer: TextTokenizer) -> None:
    turn = "<start_of_turn>user\nhi<end_of_turn>"
    assert not set(tokenizer.encode(turn)) & set(tokenizer.control.values())
    assert tokenizer.encode_trusted(turn)[::4] == [105, 106]
    assert tokenizer.stop_ids == {1, 106}


@pytest.mark.model
def test_the_prompts_have_transformers_ids(
    tokenizer: TextTokenizer, golden: list[dict[str, Any]]
) -> None:
    for entry in golden:
        text = str(entry["prompt"])
        assert tokenizer.bos_ids + tokenizer.encode_trusted(text) == entry["ids"], text
