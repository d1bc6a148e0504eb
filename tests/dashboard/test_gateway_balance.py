"""A conversation finds the replica that remembers it; no replica gets much more than its share."""

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dashboard.gateway.balance import FACTOR, leading_text, preferred

NAMES = st.lists(st.integers(0, 63).map(str), min_size=1, max_size=12, unique=True)
KEYS = st.lists(st.text(max_size=20), min_size=1, max_size=60)


@given(NAMES, KEYS)
def test_no_replica_has_more_than_its_bound(names: list[str], keys: list[str]) -> None:
    loads: Counter[str] = Counter()
    for key in keys:
        loads[preferred(key, names, loads)[0]] += 1
        bound = math.ceil(FACTOR * loads.total() / len(names))
        assert max(loads.values()) <= bound


@given(NAMES, st.text(max_size=20))
def test_the_same_beginning_goes_to_the_same_replica(names: list[str], key: str) -> None:
    first = preferred(key, names, {})
    assert preferred(key, list(reversed(names)), {}) == first
    assert sorted(first) == sorted(names)


@given(NAMES, st.text(max_size=20))
def test_where_one_leaves_only_its_own_move(names: list[str], key: str) -> None:
    first = preferred(key, names, {})
    for gone in names:
        left = [name for name in names if name != gone]
        assert preferred(key, left, {}) == [name for name in first if name != gone]


def test_many_beginnings_spread_evenly() -> None:
    names = ["0", "1", "2", "3"]
    chosen = Counter(preferred(f"prompt {number}", names, {})[0] for number in range(4000))
    assert all(800 < chosen[name] < 1200 for name in names)


def test_a_conversation_is_known_by_its_first_question() -> None:
    system = {"role": "system", "content": "Be brief."}
    first, more = {"role": "user", "content": "Hi"}, {"role": "user", "content": "And?"}
    said = {"role": "assistant", "content": "Hello"}
    beginning = leading_text({"messages": [system, first]})
    assert leading_text({"messages": [system, first, said, more]}) == beginning
    assert leading_text({"messages": [system, more]}) != beginning
    assert leading_text({"prompt": "Once"}) == "Once"
    assert leading_text({"messages": "nonsense"}) == ""
