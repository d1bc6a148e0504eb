"""Windows follow one another without a gap, and bounds are bounds."""

from datetime import UTC, datetime
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from dashboard.gateway.budgets.limits import KINDS, Price, end, most_tokens, start

MOMENTS = st.datetimes(
    datetime(2020, 1, 1),
    datetime(2090, 1, 1),
    timezones=st.just(UTC),
)


@given(MOMENTS, st.sampled_from(sorted(KINDS)))
def test_a_moment_is_in_its_window_and_the_next_begins_at_its_end(at: datetime, kind: str) -> None:
    assert start(kind, at) <= at < end(kind, at)
    assert start(kind, end(kind, at)) == end(kind, at)


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(1, 8), st.integers(1, 10**6))
def test_no_bound_is_beyond_the_context(size: int, context: int, n: int, asked: int) -> None:
    prompt, completion = most_tokens({"n": n, "max_tokens": asked}, size, context)
    assert prompt <= context * n
    assert completion == n * min(asked, context)


@given(st.decimals(0, 10**5, places=4), st.integers(0, 10**6), st.integers(0, 10**6))
def test_money_is_never_rounded_down(price: Decimal, prompt: int, completion: int) -> None:
    exact = price * prompt + price * completion
    assert 0 <= Price(price, price).micros(prompt, completion) - exact < 1
