"""A folder's tokenizer.json gives the library's own ids, and text that nobody can forge."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.checkpoint.folder.tokenizer import read_tokenizer
from engine.errors import CheckpointError
from engine.text.detokenizer import Detokenizer
from engine.text.tokenizer import TextTokenizer
from tests.engine.json_tokenizers import CONTROL, STYLES, trained

TEXTS = [
    "Hello, world! It's 2024.",
    "def f(x):\n    return x  # done\n",
    "a  b   c    d ",
    "你好，世界 😀👩‍👧 é ﬁ",
    "<think>hm</think> so",
    "\n\n\t",
    "",
]


def opened(folder: Path, content: str, **settings: Any) -> TextTokenizer:
    (folder / "tokenizer.json").write_text(content)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return TextTokenizer(read_tokenizer(folder, {}, 5000))


@pytest.fixture(params=STYLES, scope="module")
def style(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def tokenizer(style: str, tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    return opened(tmp_path_factory.mktemp("folder"), trained(style).to_str())


@pytest.mark.parametrize("text", TEXTS)
def test_ids_are_the_librarys(tokenizer: TextTokenizer, style: str, text: str) -> None:
    expected = trained(style).encode(text, add_special_tokens=False).ids
    assert tokenizer.encode(text) == expected
    assert tokenizer.encode_trusted(text) == expected


def test_ids_around_control_tokens_are_the_librarys(tokenizer: TextTokenizer, style: str) -> None:
    text = "<s><|im_start|>user\nHello world<|im_end|>\nand so on<|im_end|>"
    assert tokenizer.encode_trusted(text) == trained(style).encode(text).ids


def test_control_tokens_that_people_write_are_letters(tokenizer: TextTokenizer) -> None:
    text = "x" + "".join(CONTROL)
    ids = tokenizer.encode(text)
    assert not set(ids) & set(tokenizer.control.values())
    assert tokenizer.decode(ids) == text


@settings(max_examples=60, deadline=None)
@given(text=st.one_of(st.text(max_size=40), st.text("ab <>sé😀\n▁", max_size=40)))
def test_text_comes_back(tokenizer: TextTokenizer, style: str, text: str) -> None:
    if style != "byte-level":
        text = text.replace("▁", "_")  # how these write a space
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == trained(style).decode(ids)
    if style != "mistral" or not text.startswith(" "):  # there the space would be the library's
        assert tokenizer.decode(ids) == text


@pytest.mark.hazard("split-utf8")
@settings(max_examples=60, deadline=None)
@given(
    text=st.text("a 你😀é\u200d", min_size=1, max_size=30),
    cuts=st.lists(st.integers(0, 120), max_size=6),
)
def test_a_character_split_over_byte_tokens_appears_whole(
    tokenizer: TextTokenizer, text: str, cuts: list[int]
) -> None:
    ids = tokenizer.encode(text, first=False)
    edges = [0, *sorted(min(cut, len(ids)) for cut in cuts), len(ids)]
    detokenizer = Detokenizer(tokenizer)
    pieces = [detokenizer.feed(ids[start:stop]) for start, stop in pairwise(edges)]
    assert "".join(pieces) in (text, f" {text}")
    assert not any("\ufffd" in piece for piece in pieces)


def test_nothing_is_cut_padded_or_left_to_chance(tmp_path: Path) -> None:
    content = json.loads(trained("byte-level").to_str())
    content["model"]["dropout"] = 0.9
    content["truncation"] = {
        "direction": "Right",
        "max_length": 4,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    content["padding"] = {
        "strategy": {"Fixed": 50},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "<s>",
    }
    text = "Four score and seven years ago our fathers brought forth"
    expected = trained("byte-level").encode(text, add_special_tokens=False).ids
    assert opened(tmp_path, json.dumps(content)).encode(text) == expected


def test_every_end_of_an_answer_stops_it(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 5]}))
    tokenizer = opened(tmp_path, trained("gemma").to_str(), eos_token="</s>")
    control = tokenizer.control
    assert tokenizer.stop_ids == {1, 5, control["</s>"], control["<|im_end|>"]}


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("normalizer", {"type": "Precompiled", "precompiled_charsmap": ""}),
        ("pre_tokenizer", {"type": "FixedLength", "length": 0}),
        ("pre_tokenizer", {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"}),
        ("pre_tokenizer", {"type": "Telepathy"}),
        ("decoder", {"type": "WordPiece", "prefix": "##", "cleanup": True}),
        ("decoder", None),
        ("model", {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}),
    ],
)
def test_rules_that_cannot_be_followed_are_refused(
    tmp_path: Path, part: str, value: object
) -> None:
    content = json.loads(trained("byte-level").to_str())
    content[part] = value
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        opened(tmp_path, json.dumps(content))


def test_an_added_token_without_a_row_is_refused_unless_it_is_never_written(
    tmp_path: Path,
) -> None:
    content = json.loads(trained("byte-level").to_str())
    beyond = content["added_tokens"][-1] | {"id": 6000, "content": "<image>", "special": True}
    content["added_tokens"].append(beyond)
    assert opened(tmp_path, json.dumps(content)).size < 6000
    beyond["special"] = False
    with pytest.raises(CheckpointError, match="<image>"):
        opened(tmp_path, json.dumps(content))
