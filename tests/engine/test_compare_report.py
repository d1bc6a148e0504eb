"""The report names who is ahead, which targets are met, and why a value is missing."""

import msgspec
import pytest

from engine.bench.compare.contest import Place
from engine.bench.compare.entrants import Entrant
from engine.bench.compare.hardware import hardware
from engine.bench.compare.limits import Limits, limits_of
from engine.bench.compare.page import page
from engine.bench.compare.players.asks import Opened
from engine.bench.compare.report import Report, Row, Verdict, report, rows_of
from engine.bench.compare.targets import verdicts
from engine.bench.compare.works import FULL, works

WORKS = works(FULL, [])


def place(key: str, speed: float, *, ours: bool = False, without: str = "") -> Place:
    made = Place(
        entrant=Entrant(key=key, module="nobody", ours=ours),
        opened=Opened(name=key, how="", works=[], step_bytes=100_000_000, kv_token_bytes=100),
    )
    for work in WORKS:
        if work.name == without:
            made.reasons[work.name] = "It does not <do> this."
            continue
        for figure in work.figures:
            value = speed if figure.better == "more" else 1 / speed
            made.values[figure.name] = [value, 1.1 * value, None, 0.9 * value]
    return made


PLACES = [
    place("tandem-int8", 300.0, ours=True),
    place("tandem-int4", 200.0, ours=True),
    place("llamacpp", 100.0, without="serve"),
    place("vllm", 50.0),
]
ROWS = rows_of(PLACES, WORKS)


@pytest.fixture(scope="module")
def limits() -> Limits:
    machine = {"bandwidth": [20e9], "int8-32": [0.05]}
    opened = {place.entrant.key: place.opened for place in PLACES if place.opened}
    rates = {("tandem-int8", 1): 300.0, ("tandem-int8", 32): 300.0}
    found = limits_of(machine, 270_000_000, 288, rates, opened)
    assert found is not None
    return found


def named(name: str) -> Row:
    return next(row for row in ROWS if row.name == name)


def by_what(found: list[Verdict]) -> dict[str, Verdict]:
    return {verdict.what: verdict for verdict in found}


def test_our_best_is_compared_with_the_best_peer() -> None:
    row = named("decode-1")
    assert (row.ours, row.peer) == ("tandem-int8", "llamacpp")
    spread = row.against("llamacpp")
    assert spread is not None
    assert spread.median == pytest.approx(3.0)


def test_a_target_is_met_or_missed_by_the_median_of_the_ratios(limits: Limits) -> None:
    found = by_what(verdicts(ROWS, limits))
    assert found["Decode, batch 32"].met is True
    assert found["Prefill, 1,024 tokens"].met is False
    assert found["Prefill, 1,024 tokens"].found == pytest.approx(3.0)
    assert found["Serving, 200 open conversations"].who == "tandem-int8 against vllm"
    assert found["Serving, p95 time to first token"].met is True
    assert found["Decode, batch 1: share of the memory's bandwidth"].met is True


def test_without_peers_a_target_is_unmeasured_and_not_missed() -> None:
    found = by_what(verdicts(rows_of(PLACES[:1], WORKS), None))
    assert found["Decode, batch 1"].met is None
    assert found["Decode, batch 1"].reason == "No peer took part that does this."
    assert found["From its start to its first token"].met is True


@pytest.fixture(scope="module")
def made(limits: Limits) -> Report:
    return report(
        PLACES,
        limits,
        verdicts(ROWS, limits),
        ROWS,
        seconds=61.0,
        hardware=hardware(),
        model="model",
        threads=2,
        rounds=4,
        quick=False,
    )


def test_it_is_read_again_from_its_json(made: Report) -> None:
    assert msgspec.json.decode(msgspec.json.encode(made), type=Report) == made


def test_the_page_needs_nothing_from_outside(made: Report) -> None:
    text = page(made)
    own = text.replace(text[text.index("<script>") : text.index('<script id="figures"')], "")
    assert "http" not in own
    assert "src=" not in own
    assert "<link" not in own
    assert "Plotly.react" in own


def test_the_page_gives_the_reason_for_a_missing_value(made: Report) -> None:
    assert "It does not &lt;do&gt; this." in page(made)
