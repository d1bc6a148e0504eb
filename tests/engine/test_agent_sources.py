"""Sources outside the machine: each at its own pace, each failing for itself."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from engine.agent.polled import FIRST, OVERDUE
from engine.agent.readers import PolledSource
from engine.agent.sources import Sources
from engine.protocol.agent import Desired, decode_to_agent, encode
from monitoring.metrics import ENERGY, FAN_SPEED, POWER, SOURCE_AGE
from monitoring.probes.base import FAILED
from monitoring.probes.outside import Reader, SourceError, scope_of
from monitoring.probes.sound import fan_law
from monitoring.probes.sound.levels import heard
from monitoring.samples import Sample, measured, unavailable
from monitoring.sources import (
    DeclaredNoise,
    DeclaredPower,
    FanLawSource,
    MeterSource,
    MicrophoneSource,
    PduSource,
    RedfishSource,
    Source,
)

Answer = Callable[[], list[Sample]]
DEADLINE_SECONDS = 10.0


class World:
    """A clock that stands still, and readers that answer as they are told to."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.answers: dict[str, Answer] = {}
        self.opened: list[PolledSource] = []
        self.closed: list[PolledSource] = []
        self.rounds: dict[str, int] = {}
        self.sources = Sources(self.open, lambda: self.now)

    def open(self, source: PolledSource) -> Reader:
        self.opened.append(source)
        return ScriptedReader(self, source)

    def read_again(self, name: str) -> None:
        """Wait until a reading that began after now has been taken in."""
        before = self.rounds.get(name, 0)
        self.until(lambda: self.rounds.get(name, 0) >= before + 3, f"{name} is read")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        ends = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            assert time.monotonic() < ends, what
            time.sleep(0.002)

    def values(self, own: list[Sample] | None = None) -> dict[str, Sample]:
        samples = self.sources.with_own(own or [])
        named = [f"{s.metric}@{s.scope}{{{s.label}}}" for s in samples]
        assert len(named) == len(set(named))
        for sample in samples:
            assert (sample.value is None) == (sample.kind == "unavailable") == bool(sample.reason)
        return {
            f"{s.metric}@{s.scope}{{{s.label}}}" if s.label else f"{s.metric}@{s.scope}": s
            for s in samples
        }


class ScriptedReader:
    period = 0.005

    def __init__(self, world: World, source: PolledSource) -> None:
        self._world = world
        self._source = source

    def read(self) -> list[Sample]:
        name = self._source.name
        try:
            return self._world.answers[name]()
        finally:
            self._world.rounds[name] = self._world.rounds.get(name, 0) + 1

    def close(self) -> None:
        self._world.closed.append(self._source)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.sources.close()


def bmc(name: str = "bmc", password: str = "secret") -> RedfishSource:
    return RedfishSource(name=name, url="https://10.0.0.9", username="u", password=password)


def pdu(name: str) -> PduSource:
    return PduSource(name=name, host="10.0.0.8", profile="apc", community="c")


def watts(source: Source, value: float | None = 100.0, joules: float | None = None) -> list[Sample]:
    origin, scope = source.origin, scope_of(source)
    return [
        measured(POWER, value, source=origin, scope=scope)
        if value is not None
        else unavailable(POWER, "No power.", source=origin, scope=scope),
        measured(ENERGY, joules, source=origin, scope=scope)
        if joules is not None
        else unavailable(ENERGY, "No energy.", source=origin, scope=scope),
    ]


def raising(error: Exception) -> Answer:
    def answer() -> list[Sample]:
        raise error

    return answer


def test_a_reading_is_told_with_its_age_until_it_is_too_old(world: World) -> None:
    world.answers["bmc"] = lambda: watts(bmc())
    world.sources.set([bmc()])
    world.read_again("bmc")
    seen = world.values()
    assert seen["power_watts@host"].value == 100
    assert seen["source_age_seconds@host{bmc}"].value == 0
    world.answers["bmc"] = raising(SourceError("It is gone."))
    world.read_again("bmc")
    world.now += 0.01
    assert world.values()["power_watts@host"].value == 100
    assert world.values()["source_age_seconds@host{bmc}"].value == pytest.approx(0.01)
    world.now += 0.01
    seen = world.values()
    assert seen["power_watts@host"].reason == "It is gone."
    assert seen["source_age_seconds@host{bmc}"].reason == "It is gone."


def test_before_the_first_reading_everything_is_absent(world: World) -> None:
    held = threading.Event()
    world.answers["bmc"] = lambda: watts(bmc()) if held.wait(DEADLINE_SECONDS) else []
    world.sources.set([bmc()])
    seen = world.values()
    assert {sample.reason for sample in seen.values()} == {FIRST}
    assert "inlet_temperature_celsius@host" in seen
    held.set()


def test_a_source_that_hangs_is_overdue_and_others_go_on(world: World) -> None:
    held = threading.Event()
    rounds = iter([watts(bmc())])
    world.answers["bmc"] = lambda: next(rounds, None) or (held.wait(DEADLINE_SECONDS) and []) or []
    world.answers["rack"] = lambda: watts(pdu("rack"), 300)
    world.sources.set([bmc(), pdu("rack")])
    world.until(lambda: world.rounds.get("bmc", 0) == 1, "one round of the BMC")
    world.until(lambda: world.values()["power_watts@host"].value == 100, "its reading")
    world.now += 60
    world.read_again("rack")
    seen = world.values()
    assert seen["power_watts@host"].reason == OVERDUE
    assert seen["power_watts@wall"].value == 300
    held.set()


def test_a_mistake_in_a_reader_costs_its_own_values(world: World) -> None:
    world.answers["bmc"] = raising(ValueError("what is this"))
    world.answers["rack"] = lambda: watts(pdu("rack"), 300)
    world.sources.set([bmc(), pdu("rack")])
    world.read_again("bmc")
    world.read_again("rack")
    seen = world.values()
    assert seen["power_watts@host"].reason == FAILED
    assert seen["power_watts@wall"].value == 300


def test_it_recovers_by_itself(world: World) -> None:
    world.answers["bmc"] = raising(SourceError("It is away."))
    world.sources.set([bmc()])
    world.read_again("bmc")
    world.answers["bmc"] = lambda: watts(bmc())
    world.until(lambda: world.values()["power_watts@host"].value == 100, "a reading again")


def test_a_refused_password_is_not_tried_again_until_it_is_another(world: World) -> None:
    world.answers["bmc"] = raising(SourceError("It refused.", wait=300))
    world.sources.set([bmc()])
    world.until(lambda: world.values()["power_watts@host"].reason == "It refused.", "the refusal")
    assert world.rounds["bmc"] == 1
    world.answers["bmc"] = lambda: watts(bmc())
    world.sources.set([bmc(password="the right one")])
    world.until(lambda: world.values()["power_watts@host"].value == 100, "a reading")


def test_only_what_changed_begins_anew(world: World) -> None:
    for name in ("rack", "other"):
        world.answers[name] = lambda name=name: watts(pdu(name))  # type: ignore[misc]
    world.sources.set([pdu("rack"), pdu("other")])
    world.sources.set([pdu("rack")])
    world.sources.set([pdu("rack")])
    world.until(lambda: world.closed == [pdu("other")], "the other is closed")
    assert [source.name for source in world.opened] == ["rack", "other"]
    assert "power_watts@wall{other}" not in world.values()


def test_sessions_end_with_the_agent(world: World) -> None:
    world.answers["bmc"] = lambda: watts(bmc())
    world.sources.set([bmc()])
    world.read_again("bmc")
    world.sources.close()
    assert world.closed == [bmc()]
    assert world.values() == {}


def test_two_plugs_of_one_box_are_added_up_and_each_is_told(world: World) -> None:
    world.answers["a"] = lambda: watts(pdu("a"), 120, 1000)
    world.answers["b"] = lambda: watts(pdu("b"), 95, 500)
    world.sources.set([pdu("a"), pdu("b")])
    world.read_again("a")
    world.read_again("b")
    seen = world.values()
    assert (seen["power_watts@wall"].value, seen["power_watts@wall"].source) == (215, "pdu: a + b")
    assert seen["power_watts@wall{a}"].value == 120
    assert seen["energy_joules_total@wall"].value == 1500


def test_a_sum_without_one_of_its_plugs_is_absent(world: World) -> None:
    world.answers["a"] = lambda: watts(pdu("a"), 120)
    world.answers["b"] = lambda: watts(pdu("b"), None)
    world.sources.set([pdu("a"), pdu("b")])
    world.read_again("a")
    world.read_again("b")
    seen = world.values()
    assert seen["power_watts@wall"].reason == "No power."
    assert seen["power_watts@wall{a}"].value == 120


def test_energy_is_estimated_where_only_watts_are_told(world: World) -> None:
    world.answers["bmc"] = lambda: watts(bmc(), 100)
    world.sources.set([bmc()])
    world.read_again("bmc")
    world.now += 0.01
    world.read_again("bmc")
    energy = world.values()["energy_joules_total@host"]
    assert energy.kind == "estimated"
    assert energy.value == pytest.approx(1.0)


def test_a_counter_of_its_own_is_not_replaced(world: World) -> None:
    world.answers["bmc"] = lambda: watts(bmc(), 100, 5000)
    world.sources.set([bmc()])
    world.read_again("bmc")
    energy = world.values()["energy_joules_total@host"]
    assert (energy.value, energy.kind) == (5000, "measured")


def fans(*speeds: float) -> list[Sample]:
    return [
        measured(FAN_SPEED, rpm, source="host: hwmon", scope="host", label=f"fan{place}")
        for place, rpm in enumerate(speeds, 1)
    ]


def estimate(**fields: float | None) -> FanLawSource:
    given: dict[str, float | None] = {"level_dba": 62.0, "rpm": 8000.0, **fields}
    return FanLawSource(name="fans", **given)  # type: ignore[arg-type]


def test_fans_are_heard_by_their_speed(world: World) -> None:
    world.sources.set([estimate(band_db=4.0)])
    seen = world.values(fans(4000, 4000))
    level = seen["noise_dba@room{1 m}"]
    assert level.value == pytest.approx(62 - 15.05, abs=0.01)
    assert (level.kind, level.source) == ("estimated", "fan-law: fans")
    assert seen["noise_band_dba@room{1 m}"].value == 4.0


@pytest.mark.parametrize(
    ("source", "own", "reason"),
    [
        (estimate(), [], fan_law.NO_FAN),
        (estimate(), fans(0, 0), fan_law.STILL),
        (estimate(level_dba=None), fans(4000), fan_law.NOT_CALIBRATED),
    ],
)
def test_the_fan_law_says_why_it_is_silent(
    world: World, source: FanLawSource, own: list[Sample], reason: str
) -> None:
    world.sources.set([source])
    assert world.values(own)["noise_dba@room{1 m}"].reason == reason


def test_what_is_measured_goes_before_what_is_declared(world: World) -> None:
    meter = MeterSource(name="desk", device="/dev/ttyUSB0")
    declared: list[Source] = [
        DeclaredNoise(name="sheet", level_dba=38.0),
        DeclaredPower(name="rated", watts=240),
    ]
    world.sources.set(declared)
    seen = world.values()
    assert (seen["noise_dba@room{1 m}"].value, seen["noise_dba@room{1 m}"].kind) == (
        38.0,
        "declared",
    )
    assert seen["noise_band_dba@room{1 m}"].value is None
    assert (seen["power_watts@host"].value, seen["power_watts@host"].kind) == (240, "declared")
    assert seen["energy_joules_total@host"].value is None
    world.answers["desk"] = lambda: heard(
        41.0, (1.4, "declared"), origin=meter.origin, position="1 m", kind="measured"
    )
    world.sources.set([*declared, meter])
    world.read_again("desk")
    seen = world.values()
    assert seen["noise_dba@room{1 m}"].value == 41.0
    assert seen["noise_band_dba@room{1 m}"].value == 1.4


def test_the_nodes_own_reading_fills_in_where_the_source_has_none(world: World) -> None:
    world.answers["bmc"] = lambda: watts(bmc(), None)
    world.sources.set([bmc()])
    world.read_again("bmc")
    own = [measured(POWER, 42.0, source="host: hwmon", scope="host")]
    assert world.values(own)["power_watts@host"].source == "host: hwmon"


def test_every_kind_survives_the_wire() -> None:
    sources: list[Source] = [
        bmc(),
        pdu("rack"),
        MeterSource(name="desk", device="/dev/ttyUSB0", grade="class 1"),
        MicrophoneSource(name="mic", offset_db=120.0, calibrated="2026-11-30"),
        estimate(),
        DeclaredNoise(name="sheet", level_dba=38.0),
        DeclaredPower(name="rated", watts=240.0),
    ]
    told = decode_to_agent(encode(Desired(3, [], sources=sources)))
    assert isinstance(told, Desired)
    assert told.sources == sources
    assert "secret" not in repr(told)


def test_without_sources_nothing_is_added(world: World) -> None:
    own = fans(1000)
    assert world.sources.with_own(own) == own
    assert SOURCE_AGE.name not in {sample.metric for sample in world.sources.with_own(own)}
