"""Penalties see their own request: repetition prompt and answer, the others the answer alone."""

import pytest
import torch
from torch import Tensor

from engine.errors import ProtocolError
from engine.protocol.steps import Admit, Sampling
from tests.engine.drawing import VOCAB, logits_of, new_sampler, tokens

PROMPT = (4, 9, 9, 20)


def after(answer: tuple[int, ...], **settings: float) -> Admit:
    return Admit(Sampling(temperature=0.0, **settings), len(PROMPT), PROMPT + answer)  # type: ignore[arg-type]  # numbers


def test_repetition_divides_positive_and_multiplies_negative_logits() -> None:
    logits = torch.full((1, VOCAB), -10.0)
    logits[0, 9], logits[0, 30] = 4.0, 3.0
    sampler = new_sampler()
    assert tokens(sampler.sample(logits, [1], [after((), repetition_penalty=1.2)], [4])) == [9]
    assert tokens(sampler.sample(logits, [2], [after((), repetition_penalty=1.5)], [4])) == [30]
    logits[0, 9], logits[0, 30] = -1.0, -1.4
    assert tokens(sampler.sample(logits, [3], [after((), repetition_penalty=1.3)], [4])) == [9]
    assert tokens(sampler.sample(logits, [4], [after((), repetition_penalty=1.5)], [4])) == [30]


@pytest.mark.hazard("penalty-scope")
def test_presence_and_frequency_do_not_look_at_the_prompt() -> None:
    logits = torch.zeros(1, VOCAB)
    logits[0, 9], logits[0, 30] = 4.0, 3.0
    for penalty in ({"presence_penalty": 2.0}, {"frequency_penalty": 2.0}):
        assert tokens(new_sampler().sample(logits, [1], [after((), **penalty)], [4])) == [9]
        assert tokens(new_sampler().sample(logits, [1], [after((9,), **penalty)], [5])) == [30]


def test_frequency_counts_and_presence_does_not() -> None:
    logits = torch.zeros(1, VOCAB)
    logits[0, 9], logits[0, 30] = 4.0, 3.0
    thrice = (9, 9, 9)
    frequent, present = after(thrice, frequency_penalty=0.5), after(thrice, presence_penalty=0.5)
    assert tokens(new_sampler().sample(logits, [1], [frequent], [7])) == [30]
    assert tokens(new_sampler().sample(logits, [1], [present], [7])) == [9]


@pytest.mark.hazard("penalty-scope")
def test_batch_mates_do_not_change_what_is_penalised() -> None:
    """Forty tokens of each, drawn together and apart, with the penalties of a naive count."""
    every = {"repetition_penalty": 1.3, "presence_penalty": 0.4, "frequency_penalty": 0.3}
    admits = [after((), **every), Admit(Sampling(temperature=0.0)), after((30, 31), **every)]
    together, apart = new_sampler(), [new_sampler() for _ in admits]
    lengths = [4, 50, 6]
    answers: list[list[int]] = [[], [], [30, 31]]
    for step in range(40):
        logits = logits_of(step).repeat(3, 1)
        positions = [length + step for length in lengths]
        drawn = tokens(together.sample(logits, [0, 1, 2], admits, positions))
        for row, admit in enumerate(admits):
            expected = naive(logits[row], admit.sampling, answers[row])
            alone = apart[row].sample(logits[row : row + 1], [row], [admit], [positions[row]])
            assert tokens(alone) == [drawn[row]] == [expected]
            answers[row].append(expected)


def naive(logits: Tensor, setting: Sampling, answer: list[int]) -> int:
    row = logits.tolist()
    for token in {*PROMPT, *answer} if setting.repetition_penalty != 1 else ():
        factor = setting.repetition_penalty
        row[token] = row[token] / factor if row[token] > 0 else row[token] * factor
    for token in set(answer):
        row[token] -= setting.presence_penalty + setting.frequency_penalty * answer.count(token)
    return row.index(max(row))


def test_what_a_sequence_left_behind_is_forgotten_with_it() -> None:
    sampler = new_sampler()
    logits = torch.zeros(1, VOCAB)
    logits[0, 9], logits[0, 30] = 4.0, 3.0
    admit = Admit(Sampling(temperature=0.0, presence_penalty=2.0), 1, (1,))
    assert tokens(sampler.sample(logits, [5], [admit], [1])) == [9]
    assert tokens(sampler.sample(logits, [5], [admit], [2])) == [30]
    sampler.forget([5, 6])
    assert tokens(sampler.sample(logits, [5], [admit], [1])) == [9]


def test_a_history_that_is_not_the_sequences_own_is_refused() -> None:
    with pytest.raises(ProtocolError, match="position 9 of a sequence of 4"):
        new_sampler().sample(logits_of(1), [1], [after((), presence_penalty=1.0)], [9])
