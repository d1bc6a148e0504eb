"""Text is cut into words as the tokenizers of each family cut it."""

from typing import Any

import pytest
from transformers import Qwen2Tokenizer
from transformers.models.qwen3_5.tokenization_qwen3_5 import Qwen3_5Tokenizer

from engine.checkpoint import TokenizerMetadata
from engine.errors import CheckpointError
from engine.text.alphabet import BYTE_OF
from engine.text.pretokenizers import RULES
from engine.text.tokenizer import TextTokenizer

TEXT = "I'LL pay 12345 dollars;\r\n\n  x_1=(3.5)!?  नमस्ते 你好。e\u0301 "


def words(name: str, text: str) -> list[str]:
    cut = RULES[name].pre_tokenizer().pre_tokenize_str(text)
    return [bytes(BYTE_OF[letter] for letter in word).decode() for word, _ in cut]


def reference_words(tokenizer: Any, text: str) -> list[str]:
    backend = tokenizer(vocab={}, merges=[]).backend_tokenizer
    cut = backend.pre_tokenizer.pre_tokenize_str(text)
    return [bytes(BYTE_OF[letter] for letter in word).decode() for word, _ in cut]


@pytest.mark.parametrize(
    ("name", "reference"), [("qwen2", Qwen2Tokenizer), ("qwen35", Qwen3_5Tokenizer)]
)
def test_qwen_cuts_as_transformers_does(name: str, reference: Any) -> None:
    assert words(name, TEXT) == reference_words(reference, TEXT)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-2", ["It", "'s", " 12345", " 你好", "\n\n", " x"]),
        ("smollm", ["It", "'s", " ", "1", "2", "3", "4", "5", " 你好", "\n\n", " x"]),
        ("llama-bpe", ["It", "'s", " ", "123", "45", " 你好", "\n\n", " x"]),
        ("qwen2", ["It", "'s", " ", "1", "2", "3", "4", "5", " 你好", "\n\n", " x"]),
        ("tekken", ["It", "'s", " ", "1", "2", "3", "4", "5", " 你好", "\n\n", " x"]),
        ("deepseek-v3", ["It", "'s", " ", "123", "45", " ", "你好", "\n\n", " x"]),
        (
            "deepseek-llm",
            ["It", "'", "s", " ", "1", "2", "3", "4", "5", " ", "你好", "\n", "\n", " x"],
        ),
    ],
)
def test_digits_words_and_lines_are_cut_by_the_familys_rules(
    name: str, expected: list[str]
) -> None:
    assert words(name, "It's 12345 你好\n\n x") == expected


@pytest.mark.parametrize("name", RULES)
def test_no_rule_loses_text(name: str) -> None:
    assert "".join(words(name, TEXT)) == TEXT


def test_case_splits_words_for_tekken_alone() -> None:
    assert words("tekken", "helloWorld") == ["hello", "World"]
    assert words("llama-bpe", "helloWorld") == ["helloWorld"]


def test_unknown_rules_are_refused_by_name() -> None:
    metadata = TokenizerMetadata(
        model="gpt2",
        pre="telepathy",
        tokens=["a"],
        token_types=[1],
        merges=[],
        bos_id=None,
        eos_id=None,
        eot_id=None,
        unknown_id=None,
        padding_id=None,
        add_bos=False,
        add_space_prefix=False,
        chat_template=None,
    )
    with pytest.raises(CheckpointError, match="'telepathy' is not supported"):
        TextTokenizer(metadata)
