"""What a keeper passes on arrives whole, in order and once, however it is cut."""

from hypothesis import given
from hypothesis import strategies as st

from engine.agent.keeper import output
from engine.agent.keeper.frames import Frames, pack
from engine.agent.keeper.output import Output

frames = st.lists(st.tuples(st.sampled_from([b"O", b"X", b"N"]), st.binary(max_size=40)))


@given(frames, st.integers(1, 50))
def test_frames_survive_however_the_bytes_arrive(sent: list[tuple[bytes, bytes]], cut: int) -> None:
    wire = b"".join(pack(kind, payload) for kind, payload in sent)
    reader = Frames()
    pieces = (wire[start : start + cut] for start in range(0, len(wire), cut))
    assert [frame for piece in pieces for frame in reader.feed(piece)] == sent


@given(st.lists(st.binary(min_size=1, max_size=300)))
def test_what_is_taken_as_it_comes_is_all_there_was(chunks: list[bytes]) -> None:
    kept, taken = Output(), b""
    for chunk in chunks:
        kept.add(chunk)
        while kept.fresh:
            taken += kept.take()
    assert taken == b"".join(chunks)
    assert kept.old() == taken[-output.TAIL_BYTES :]


@given(st.lists(st.binary(min_size=1, max_size=output.TAIL_BYTES), max_size=4))
def test_of_what_nobody_took_the_end_is_kept(chunks: list[bytes]) -> None:
    kept = Output()
    for chunk in chunks:
        kept.add(chunk)
    assert kept.old() == b""
    taken = b""
    while kept.fresh:
        taken += kept.take()
    assert taken == b"".join(chunks)[-output.TAIL_BYTES :]
