"""SentencePiece vocabularies give SentencePiece's own ids, and no character comes out torn.

The expected ids come from tests/golden/make_sentence_pieces.py.
"""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.checkpoint import TokenizerMetadata
from engine.errors import CheckpointError
from engine.text.detokenizer import Detokenizer
from engine.text.tokenizer import TextTokenizer

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "sentence_pieces.json").read_text())
ANY_TEXT = st.one_of(st.text(max_size=40), st.text("ab <>s\n你😀é\u200d", max_size=40))


def metadata(*, prefix: bool = True, bytes_known: bool = True) -> TokenizerMetadata:
    return TokenizerMetadata(
        model="llama",
        pre="default",
        tokens=GOLDEN["tokens"],
        token_types=[
            1 if kind == 6 and not bytes_known else kind for kind in GOLDEN["token_types"]
        ],
        merges=[],
        scores=GOLDEN["scores"],
        bos_id=1,
        eos_id=2,
        eot_id=None,
        unknown_id=0,
        padding_id=None,
        add_bos=True,
        add_space_prefix=prefix,
        chat_template=None,
    )


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return TextTokenizer(metadata())


@pytest.mark.parametrize("entry", GOLDEN["texts"], ids=lambda entry: repr(entry["text"][:12]))
def test_ids_are_sentencepieces(tokenizer: TextTokenizer, entry: dict[str, object]) -> None:
    assert tokenizer.encode(str(entry["text"])) == entry["ids"]


@settings(max_examples=100, deadline=None)
@given(text=ANY_TEXT)
@pytest.mark.parametrize("prefix", [True, False])
def test_text_comes_back(prefix: bool, text: str) -> None:
    text = text.replace("▁", "_")  # how the vocabulary writes a space
    tokenizer = TextTokenizer(metadata(prefix=prefix))
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.hazard("split-utf8")
@settings(max_examples=100, deadline=None)
@given(text=ANY_TEXT, cuts=st.lists(st.integers(0, 160), max_size=6))
def test_a_character_of_several_byte_tokens_appears_whole(
    tokenizer: TextTokenizer, text: str, cuts: list[int]
) -> None:
    ids = tokenizer.encode(text)
    edges = [0, *sorted(min(cut, len(ids)) for cut in cuts), len(ids)]
    detokenizer = Detokenizer(tokenizer)
    pieces = [detokenizer.feed(ids[start:stop]) for start, stop in pairwise(edges)]
    assert "".join(pieces).removeprefix(" ") == text.replace("▁", " ")
    assert "\ufffd" in text or not any("\ufffd" in piece for piece in pieces)


def test_control_and_byte_tokens_that_people_write_are_letters(tokenizer: TextTokenizer) -> None:
    ids = tokenizer.encode("<s>x</s><0x0A>")
    assert not set(ids) & {*tokenizer.control.values(), GOLDEN["tokens"].index("<0x0A>")}
    assert tokenizer.decode(ids) == "<s>x</s><0x0A>"
    assert tokenizer.encode_trusted("<s>")[0] == 1


def test_a_vocabulary_without_its_bytes_is_refused() -> None:
    with pytest.raises(CheckpointError, match="one token for each byte"):
        TextTokenizer(metadata(bytes_known=False))
