"""Small tokenizers of every style that tokenizer.json files have, trained on the spot."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

TEXT = Path(__file__).parent.parent / "data" / "public_domain.txt"
CONTROL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
DEFINED = ["<think>", "</think>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def _byte_level() -> Tokenizer:
    """As Llama 3, Qwen and DeepSeek do."""
    tokenizer = Tokenizer(models.BPE())
    words = pre_tokenizers.Split(Regex(r" ?\p{L}+|\p{N}{1,3}|\s+|[^\s\p{L}\p{N}]+"), "isolated")
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, letters])
    tokenizer.decoder = decoders.ByteLevel()
    _train(tokenizer, pre_tokenizers.ByteLevel.alphabet())
    return tokenizer


def _gemma() -> Tokenizer:
    """Spaces written as ▁, never one in front."""
    tokenizer = _with_bytes()
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return tokenizer


def _llama2() -> Tokenizer:
    """A space in front of every stretch of text."""
    tokenizer = _with_bytes()
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = _stripping()
    return tokenizer


def _mistral() -> Tokenizer:
    """A space in front of a whole text alone."""
    tokenizer = _with_bytes()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = _stripping()
    return tokenizer


STYLES: dict[str, Callable[[], Tokenizer]] = {
    "byte-level": _byte_level,
    "gemma": _gemma,
    "llama2": _llama2,
    "mistral": _mistral,
}


@cache
def trained(style: str) -> Tokenizer:
    tokenizer = STYLES[style]()
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in CONTROL])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in DEFINED])
    return tokenizer


def _stripping() -> decoders.Decoder:
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)])


def _with_bytes() -> Tokenizer:
    """Merges of ordinary text in SentencePiece's spelling, and a token for each byte."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Metaspace()
    _train(learner, [])
    learned = json.loads(learner.to_str())["model"]
    tokens = [*BYTES, *learned["vocab"]]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    merges = [(left, right) for left, right in learned["merges"]]
    return Tokenizer(models.BPE(vocab=vocabulary, merges=merges, byte_fallback=True))


def _train(tokenizer: Tokenizer, alphabet: list[str]) -> None:
    trainer = trainers.BpeTrainer(
        vocab_size=700, initial_alphabet=alphabet, show_progress=False, special_tokens=[]
    )
    tokenizer.train_from_iterator(TEXT.read_text().splitlines(), trainer)
