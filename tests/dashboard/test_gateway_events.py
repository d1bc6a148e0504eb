"""Server-sent events are read the same wherever the network cuts them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dashboard.gateway.blocks import BlockReader, Comment, Event

STREAM = (
    ': j {"id": "x"}\ndata: {"a": "ü"}\n\n: keep-alive\n\ndata: one\ndata: two\r\n\r\n'
    ": t 0 5 6\n\n: t 0 7\nid: 1\ndata: [DONE]\n\n"
).encode()


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_chunk_borders_do_not_matter(cuts: list[int]) -> None:
    reader = BlockReader()
    borders = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[a:b] for a, b in pairwise(borders)]
    found = [block for chunk in chunks for block in reader.feed(chunk)]
    assert found == [
        Event(('data: {"a": "ü"}'.encode(),), (b': j {"id": "x"}',)),
        Comment(b": keep-alive"),
        Event((b"data: one", b"data: two")),
        Event((), (b": t 0 5 6",)),
        Event((b"id: 1", b"data: [DONE]"), (b": t 0 7",)),
    ]
    assert [block.data for block in found if isinstance(block, Event)][1] == b"one\ntwo"
