"""What a process prints, as lines a person can read."""

from hypothesis import given
from hypothesis import strategies as st

from engine.agent.lines import MAX_LINE, LineSplitter


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1)), st.data())
def test_lines_survive_however_the_bytes_arrive(lines: list[str], data: st.DataObject) -> None:
    payload = "\n".join(lines).encode()
    splitter = LineSplitter()
    heard: list[str] = []
    while payload:
        size = data.draw(st.integers(1, len(payload)))
        heard += splitter.feed(payload[:size])
        payload = payload[size:]
    heard += splitter.end()
    assert heard == lines


def test_progress_bars_become_lines_and_endless_lines_are_cut() -> None:
    splitter = LineSplitter()
    assert list(splitter.feed(b"10%\r50%\r\n")) == ["10%", "50%"]
    assert list(splitter.feed(b"x" * 100_000)) == ["x" * MAX_LINE]
    assert list(splitter.feed(b"\xff broken\n")) == ["\N{REPLACEMENT CHARACTER} broken"]
