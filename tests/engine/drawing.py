"""The output rank's sampler without a rank: rows of logits in, draws out."""

import torch
from torch import Tensor

from engine.protocol.steps import Admit, Sampling
from engine.runner.grammar import Grammars
from engine.runner.sampler import Draw, Sampler
from tests.engine.bundled import bundled_tokenizer

VOCAB = 600


def logits_of(seed: int, rows: int = 1, vocab: int = VOCAB) -> Tensor:
    return torch.randn(rows, vocab, generator=torch.Generator().manual_seed(seed)) * 3


def new_sampler(token_count: int = VOCAB) -> Sampler:
    return Sampler(token_count, Grammars(bundled_tokenizer))


def draw(
    logits: Tensor, settings: list[Sampling], positions: list[int], token_count: int = VOCAB
) -> list[Draw]:
    """One draw a row, of sequences that have no history."""
    admits = [Admit(setting) for setting in settings]
    seqs = list(range(len(settings)))
    return new_sampler(token_count).sample(logits, seqs, admits, positions)


def tokens(draws: list[Draw]) -> list[int]:
    assert not any(one.failed for one in draws), draws
    return [one.token for one in draws]
