"""Server-sent events are read the same wherever the network cuts them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dashboard.gateway.stream import EventReader

STREAM = 'data: {"a": "ü"}\n\n: keep-alive\n\ndata: one\ndata: two\r\n\r\ndata: [DONE]\n\n'.encode()


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_chunk_borders_do_not_matter(cuts: list[int]) -> None:
    reader = EventReader()
    borders = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[a:b] for a, b in pairwise(borders)]
    found = [payload for chunk in chunks for payload in reader.feed(chunk)]
    assert found == ['{"a": "ü"}'.encode(), b"one\ntwo", b"[DONE]"]
