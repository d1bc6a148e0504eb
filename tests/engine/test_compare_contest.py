"""Contestants are processes that take turns; what one cannot do costs the others nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.bench.compare.contest import Contest, Setting
from engine.bench.compare.entrants import Entrant
from engine.bench.compare.report import rows_of
from engine.bench.compare.works import QUICK, Work, works


def entrant(key: str, rate: float, *, ours: bool = False, **settings: str) -> Entrant:
    return Entrant(
        key=key,
        module="tests.engine.fake_player",
        ours=ours,
        settings={"rate": str(rate), **settings},
    )


@contextmanager
def contest(folder: Path, *entrants: Entrant) -> Iterator[Contest]:
    setting = Setting(
        gguf="model.gguf", folder="", threads=1, device="cpu", sizes=QUICK, logs=folder / "logs"
    )
    with Contest(list(entrants), setting) as made:
        made.open()
        yield made


def quick(*names: str) -> list[Work]:
    return works(QUICK, list(names))


def test_rounds_take_turns_and_are_compared_pair_by_pair(tmp_path: Path) -> None:
    with contest(tmp_path, entrant("ours", 300, ours=True), entrant("peer", 100)) as made:
        made.run(quick("decode"), rounds=3)
    row = next(row for row in rows_of(made.places, quick("decode")) if row.name == "decode-1")
    ours, peer = row.series["ours"], row.series["peer"]
    assert [len(ours.values), len(peer.values)] == [3, 3]
    assert ours.values != sorted(ours.values, key=lambda value: value or 0)
    (ratio,) = row.ratios
    assert (ratio.ours, ratio.peer) == ("ours", "peer")
    assert round(ratio.spread.low, 6) == round(ratio.spread.high, 6) == 3.0


def test_a_peer_at_rest_takes_no_processor_time(tmp_path: Path) -> None:
    with contest(tmp_path, entrant("ours", 300, ours=True), entrant("peer", 100)) as made:
        made.run(quick("decode"), rounds=2)
        peer = made.places[1]
        assert peer.resting > 0
        assert peer.resting_cpu == 0.0


def test_a_refused_work_is_absent_with_the_reason(tmp_path: Path) -> None:
    with contest(tmp_path, entrant("ours", 300, ours=True)) as made:
        made.run(quick("prefill", "first", "serve"), rounds=1)
    rows = {row.name: row for row in rows_of(made.places, quick("prefill", "first", "serve"))}
    assert rows["prefill-64"].series["ours"].spread is None
    assert rows["prefill-64"].series["ours"].absent == "Its prompts are too long."
    assert rows["first-cold"].series["ours"].absent == "It does not do this."
    assert rows["serve"].spread("ours") is not None
    assert rows["serve-itl-p50"].spread("ours") is None


def test_a_contestant_that_dies_says_why_and_the_others_play_on(tmp_path: Path) -> None:
    dying = entrant("peer", 100, dies="yes")
    with contest(tmp_path, entrant("ours", 300, ours=True), dying) as made:
        made.run(quick("decode"), rounds=2)
    ours, peer = made.places
    assert not ours.gone
    assert "Out of fuel" in peer.gone
    row = rows_of(made.places, quick("decode"))[0]
    assert row.series["peer"].absent == peer.gone
    assert row.spread("ours") is not None
    assert row.ratios == []


def test_one_that_cannot_load_takes_no_part(tmp_path: Path) -> None:
    with contest(tmp_path, entrant("peer", 1, refuses="There is no such device.")) as made:
        made.run(quick("decode"), rounds=1)
    assert made.places[0].gone == "There is no such device."
    assert made.places[0].values["decode-1"] == [None]


def test_a_fresh_process_tells_its_start_and_its_memory(tmp_path: Path) -> None:
    with contest(tmp_path, entrant("ours", 300, ours=True)) as made:
        made.run(quick("fresh"), rounds=1)
    rows = {row.name: row.spread("ours") for row in rows_of(made.places, quick("fresh"))}
    load, memory = rows["load"], rows["memory"]
    assert load is not None
    assert memory is not None
    assert load.median > 0
    assert memory.median > 1


def test_a_neighbour_keeps_one_core_busy_for_one_of_two_answers(tmp_path: Path) -> None:
    with contest(tmp_path, entrant("ours", 300, ours=True)) as made:
        made.run(quick("noisy"), rounds=1)
    row = next(row for row in rows_of(made.places, quick("noisy")) if row.name == "noisy-times")
    spread = row.spread("ours")
    assert made.core is not None
    assert spread is not None
    assert round(spread.median, 6) == 1.1
