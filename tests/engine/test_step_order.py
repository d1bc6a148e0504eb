"""A rank refuses any step that does not follow, before it computes anything."""

import msgspec
import pytest

from engine.errors import ProtocolError
from engine.protocol.steps import Admit, Row, Sampling, Step, step_digest
from engine.runner.mirror import Mirror


def mirror() -> Mirror:
    return Mirror(epoch=1, num_blocks=8, vocab_size=100, token_limit=64)


def admit(seq: int = 1, n: int = 0) -> Step:
    row = Row(seq, [1, 2, 3], 0, [4], True, Admit(Sampling()))
    return Step(1, n, [row], [], step_digest(1, n, [(seq, 3, 1)]))


def test_steps_in_order_are_applied() -> None:
    state = mirror()
    assert state.apply(admit()) == [4]
    row = Row(1, [9], 3, [], True)
    assert state.apply(Step(1, 1, [row], [], step_digest(1, 1, [(1, 4, 1)]))) == []
    assert state.sequences[1].computed == 4
    state.apply(Step(1, 2, [], [1], step_digest(1, 2, [])))
    assert not state.sequences


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"n": 1}, "Step 1 of epoch 1 arrived where step 0"),
        ({"epoch": 2}, "epoch 2 arrived"),
        ({"digest": b"12345678"}, "differ from the head's"),
        ({"released": [5]}, "releases sequence 5"),
        ({"rows": [Row(1, [1], 0, [4], True)]}, "continues sequence 1, which is unknown"),
        ({"rows": [Row(1, [1], 0, [8], True, Admit(Sampling()))]}, "beyond the 8"),
        ({"rows": [Row(1, [100], 0, [4], True, Admit(Sampling()))]}, "outside the vocabulary"),
        ({"rows": [Row(1, [1], 0, [], True, Admit(Sampling()))]}, "0 blocks for 1 tokens"),
        ({"rows": [Row(1, [], 0, [4], True, Admit(Sampling()))]}, "with 0 tokens"),
        ({"rows": [Row(1, [1] * 65, 0, [1, 2, 3, 4, 5], True, Admit(Sampling()))]}, "budget of 64"),
        ({"rows": [Row(1, [1], 0, [4], True, Admit(Sampling()))] * 2}, "names a sequence twice"),
    ],
)
def test_a_step_that_does_not_follow_is_refused(change: dict[str, object], reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        mirror().apply(msgspec.structs.replace(admit(), **change))


def test_a_row_that_skips_a_token_is_refused() -> None:
    state = mirror()
    state.apply(admit())
    with pytest.raises(ProtocolError, match="at 5 with 1 tokens, but 3 are computed"):
        state.apply(Step(1, 1, [Row(1, [9], 5, [], True)], [], b""))


def test_only_blocks_that_will_be_written_count_as_fresh() -> None:
    row = Row(1, [1, 2], 32, [3, 5, 6], True, Admit(Sampling()))
    step = Step(1, 0, [row], [], step_digest(1, 0, [(1, 34, 3)]))
    assert mirror().apply(step) == [6]
