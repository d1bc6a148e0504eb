"""The tokenizer agrees with the reference implementation and never loses text."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AddedToken, PreTrainedTokenizerFast

from engine.errors import RequestError
from engine.text.detokenizer import Detokenizer
from engine.text.tokenizer import TextTokenizer
from tests.engine.bundled import bundled_tokenizer

TRICKY = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="ab 0123456789\n\t'<|>_éß漢字🙂\u200d\u0301", max_size=60),
    st.sampled_from(
        ["<|im_end|>", "it's 2024's  \n\n", "👨‍👩‍👧‍👦", " <|im_start|>user\nhi<|im_end|>\n"]
    ),
)

SPELLED = {t[0] for i in range(49152) if len(t := bundled_tokenizer().token_bytes(i)) == 1}


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return bundled_tokenizer()


@pytest.fixture(scope="module")
def reference(tokenizer: TextTokenizer) -> Any:
    """transformers over the same vocabulary, control tokens added its own way."""
    metadata = tokenizer.metadata
    vocabulary = {token: index for index, token in enumerate(metadata.tokens)}
    merges = [(left, right) for left, right in map(str.split, metadata.merges)]
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([digits, letters])
    backend.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in tokenizer.control]
    )
    fast: Any = PreTrainedTokenizerFast
    return fast(tokenizer_object=backend)


@settings(max_examples=300, deadline=None)
@given(text=TRICKY)
def test_text_survives_a_round_trip(tokenizer: TextTokenizer, text: str) -> None:
    # This vocabulary has no token for some bytes of rare planes: nothing can spell those.
    assume(set(text.encode()) <= SPELLED)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@settings(max_examples=300, deadline=None)
@given(text=TRICKY)
def test_ids_equal_the_reference(tokenizer: TextTokenizer, reference: Any, text: str) -> None:
    assert tokenizer.encode_trusted(text) == reference.encode(text, add_special_tokens=False)


@settings(max_examples=300, deadline=None)
@given(tokens=st.lists(st.integers(0, 49151), max_size=40), cuts=st.lists(st.integers(0, 40)))
def test_text_by_steps_is_the_whole_text(
    tokenizer: TextTokenizer, tokens: list[int], cuts: list[int]
) -> None:
    detokenizer = Detokenizer(tokenizer)
    edges = [0, *sorted(cut for cut in cuts if cut < len(tokens)), len(tokens)]
    text = "".join(detokenizer.feed(tokens[a:b]) for a, b in pairwise(edges))
    whole = tokenizer.decode(tokens)
    assert whole.startswith(text)
    assert set(whole[len(text) :]) <= {"\ufffd"}, "only half a character may be left out"


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet="🙂漢é\u0301👩\u200d", min_size=1, max_size=20))
def test_split_characters_appear_whole(tokenizer: TextTokenizer, text: str) -> None:
    detokenizer = Detokenizer(tokenizer)
    pieces = [detokenizer.feed([token]) for token in tokenizer.encode(text)]
    assert "".join(pieces) == text
    assert all("\ufffd" not in piece for piece in pieces)


def test_control_tokens_are_letters_in_plain_text(tokenizer: TextTokenizer) -> None:
    assert not set(tokenizer.control.values()) & set(tokenizer.encode("<|im_end|><|endoftext|>"))
    assert tokenizer.encode_trusted("<|im_end|>") == [2]


def test_control_tokens_add_no_text(tokenizer: TextTokenizer) -> None:
    assert tokenizer.decode([1, *tokenizer.encode("hello"), 2]) == "hello"


def test_text_that_is_no_unicode_is_refused(tokenizer: TextTokenizer) -> None:
    with pytest.raises(RequestError, match="Unicode"):
        tokenizer.encode("\ud800")
