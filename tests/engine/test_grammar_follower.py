"""Following a grammar: whatever the vocabulary, and only until the answer is complete."""

import numpy as np
import pytest
import torch

from engine.protocol.steps import Admit, Sampling
from engine.runner.grammar import Grammars
from engine.runner.sampler import Sampler
from engine.text.grammar import compile_choice, compile_json_schema, compile_regex
from tests.engine.drawing import tokens


class Letters:
    """Bytes, a few words, two ends; encodes with a space it puts first, like SentencePiece."""

    def __init__(self, ends: tuple[int, ...] = (0, 1)) -> None:
        self.words = [b"", b"", *(bytes([byte]) for byte in range(256)), b' "', b"yes", b"null"]
        self.size = len(self.words)
        self.control = {"<end>": 0, "<turn>": 1}
        self.stop_ids = frozenset(ends)

    def token_bytes(self, token: int) -> bytes:
        return self.words[token]

    def encode(self, text: str, *, first: bool = True) -> list[int]:
        return [2 + byte for byte in f" {text}".encode()]


def sampler(vocabulary: Letters) -> Sampler:
    return Sampler(vocabulary.size, Grammars(lambda: vocabulary))


def write(vocabulary: Letters, sampling: Sampling, limit: int = 30) -> list[int]:
    drawing, admit, answer = sampler(vocabulary), Admit(sampling, 1, (5,)), list[int]()
    while len(answer) < limit and not set(answer) & vocabulary.stop_ids:
        logits = torch.randn(1, vocabulary.size, generator=torch.Generator().manual_seed(7))
        answer += tokens(drawing.sample(logits, [1], [admit], [1 + len(answer)]))
    return answer


@pytest.mark.parametrize("grammar", [compile_choice(["yes", "null"]), compile_regex("yes|null")])
def test_only_an_end_may_follow_a_complete_answer(grammar: str) -> None:
    vocabulary = Letters()
    for seed in range(12):
        answer = write(vocabulary, Sampling(temperature=2.0, seed=seed, grammar=grammar))
        assert b"".join(map(vocabulary.token_bytes, answer)) in (b"yes", b"null")
        assert answer[-1] in vocabulary.stop_ids


def test_every_end_of_the_model_ends_an_answer() -> None:
    follower = Grammars(Letters).follow(compile_choice(["yes"]))
    follower.advance([Letters().words.index(b"yes")])
    assert np.flatnonzero(follower.allowed(Letters().size)).tolist() == [0, 1]
    follower.advance([1, 40, 1])
    assert np.flatnonzero(follower.allowed(Letters().size)).tolist() == [0, 1]


def test_a_complete_answer_may_end_before_min_tokens() -> None:
    sampling = Sampling(
        temperature=0.0, grammar=compile_choice(["yes"]), stop_tokens=(0, 1), min_tokens=20
    )
    assert write(Letters(), sampling)[-1] in (0, 1)


def test_penalties_and_bias_cannot_break_a_grammar() -> None:
    sampling = Sampling(
        seed=2,
        grammar=compile_json_schema({"type": "array", "items": {"const": 1}, "minItems": 4}),
        repetition_penalty=2.0,
        frequency_penalty=2.0,
        logit_bias={70: 100.0},
    )
    vocabulary = Letters()
    written = b"".join(map(vocabulary.token_bytes, write(vocabulary, sampling, 60)))
    assert b"".join(written.split()).startswith(b"[1,1,1")
    assert not set(written) - set(b"[1, \n]")


def test_a_bias_against_everything_the_grammar_allows_fails_the_request() -> None:
    vocabulary = Letters()
    bias = {token: float("-inf") for token in range(vocabulary.size)}
    sampling = Sampling(grammar=compile_choice(["yes"]), logit_bias=bias)
    (drawn,) = sampler(vocabulary).sample(
        torch.zeros(1, vocabulary.size), [1], [Admit(sampling, 1, (5,))], [1]
    )
    assert drawn.failed
    assert drawn.reason == "Every token is forbidden here."


def test_a_model_without_an_end_refuses_grammars_and_nothing_else() -> None:
    vocabulary = Letters(ends=())
    logits = torch.zeros(2, vocabulary.size)
    admits = [Admit(Sampling(grammar=compile_choice(["yes"])), 1, (5,)), Admit(Sampling(), 1)]
    formed, free = sampler(vocabulary).sample(logits, [1, 2], admits, [1, 1])
    assert formed.failed
    assert formed.reason == "This model has no token that ends an answer."
    assert not free.failed


def test_many_grammars_are_compiled_once_and_the_oldest_forgotten() -> None:
    grammars = Grammars(Letters)
    for number in range(60):
        follower = grammars.follow(compile_choice([f"answer {number}"]))
        assert follower.allowed(Letters().size).sum() == 1
    again = grammars.follow(compile_choice(["answer 0"]))
    assert again.allowed(Letters().size).sum() == 1
