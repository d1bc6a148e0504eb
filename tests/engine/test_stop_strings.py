"""Stop strings work across token boundaries and never leak a part of themselves."""

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.text.stops import StopMatcher

LETTERS = "abc"
STOPS = st.lists(st.text(LETTERS, min_size=1, max_size=4), max_size=3)


def first_stop(text: str, stops: list[str]) -> str:
    """What a reader of single characters would keep."""
    for end in range(1, len(text) + 1):
        hits = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if hits:
            return text[: min(hits)]
    return text


@settings(max_examples=500, deadline=None)
@given(pieces=st.lists(st.text(LETTERS, max_size=5), max_size=8), stops=STOPS)
def test_the_answer_does_not_depend_on_where_tokens_end(
    pieces: list[str], stops: list[str]
) -> None:
    matcher = StopMatcher(stops)
    shown = "".join(matcher.feed(piece) for piece in pieces) + matcher.flush()
    assert shown == first_stop("".join(pieces), stops)


def test_a_possible_stop_is_held_back_and_released() -> None:
    matcher = StopMatcher(["</end>"])
    assert [matcher.feed("x</e"), matcher.feed("n"), matcher.feed("t")] == ["x", "", "</ent"]


def test_nothing_follows_a_match() -> None:
    matcher = StopMatcher(["\n\n"])
    assert [matcher.feed("a\n"), matcher.feed("\nb"), matcher.feed("c"), matcher.flush()] == [
        "a", "", "", "",
    ]  # fmt: skip
    assert matcher.matched == "\n\n"
