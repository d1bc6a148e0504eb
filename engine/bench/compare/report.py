"""What a contest found, ready to be written as JSON."""

import time

import msgspec

from engine import VERSION
from engine.bench.compare.contest import Place
from engine.bench.compare.hardware import Hardware
from engine.bench.compare.limits import Limits
from engine.bench.compare.spread import Better, Spread, best, ratios
from engine.bench.compare.works import Figure, Work


class Player(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    name: str
    how: str
    ours: bool
    gone: str
    """Why it did not take part to the end; empty when it did."""
    resting_share: float | None
    """Of one core, that it took while others were measured."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One contestant's values of one figure."""

    values: list[float | None]
    """One a round."""
    spread: Spread | None
    absent: str = ""
    """Why there is none."""


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """Pair by pair: round i of one against round i of the other; above 1 ours is better."""

    ours: str
    peer: str
    spread: Spread


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One figure, of everybody."""

    name: str
    title: str
    unit: str
    better: Better
    series: dict[str, Series]
    ours: str | None
    """Our best."""
    peer: str | None
    """The best of the others."""
    ratios: list[Ratio]
    """Of our best, to everyone else's."""

    def against(self, peer: str | None) -> Spread | None:
        return next((ratio.spread for ratio in self.ratios if ratio.peer == peer), None)

    def spread(self, key: str | None) -> Spread | None:
        series = self.series.get(key or "")
        return series.spread if series else None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    target: str
    found: float | None
    spread: Spread | None
    met: bool | None
    """None where it was not measured, for `reason`."""
    reason: str = ""
    who: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    made: str
    """UTC."""
    seconds: float
    hardware: Hardware
    model: str
    threads: int
    rounds: int
    quick: bool
    players: list[Player]
    rows: list[Row]
    limits: Limits | None
    verdicts: list[Verdict]


def report(
    places: list[Place],
    limits: Limits | None,
    verdicts: list[Verdict],
    rows: list[Row],
    *,
    seconds: float,
    hardware: Hardware,
    model: str,
    threads: int,
    rounds: int,
    quick: bool,
) -> Report:
    return Report(
        version=VERSION,
        made=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        seconds=round(seconds, 1),
        hardware=hardware,
        model=model,
        threads=threads,
        rounds=rounds,
        quick=quick,
        players=[_player(place) for place in places],
        rows=rows,
        limits=limits,
        verdicts=verdicts,
    )


def rows_of(places: list[Place], works: list[Work]) -> list[Row]:
    return [_row(figure, work, places) for work in works for figure in work.figures]


def _player(place: Place) -> Player:
    share = place.resting_cpu / place.resting if place.resting else None
    return Player(
        key=place.entrant.key,
        name=place.opened.name if place.opened else place.entrant.key,
        how=place.how,
        ours=place.entrant.ours,
        gone=place.gone,
        resting_share=None if share is None else round(share, 4),
    )


def _row(figure: Figure, work: Work, places: list[Place]) -> Row:
    series = {place.entrant.key: _series(figure, work, place) for place in places}
    medians = {key: each.spread.median for key, each in series.items() if each.spread}
    own = {place.entrant.key for place in places if place.entrant.ours}
    ours = best({key: value for key, value in medians.items() if key in own}, figure.better)
    peer = best({key: value for key, value in medians.items() if key not in own}, figure.better)
    return Row(
        name=figure.name,
        title=figure.title,
        unit=figure.unit,
        better=figure.better,
        series=series,
        ours=ours,
        peer=peer,
        ratios=_ratios(ours, series, figure.better),
    )


def _series(figure: Figure, work: Work, place: Place) -> Series:
    values = place.values.get(figure.name, [])
    spread = Spread.of([value for value in values if value is not None])
    absent = "" if spread else place.reasons.get(work.name) or place.gone or "It was not measured."
    return Series(values=values, spread=spread, absent=absent)


def _ratios(ours: str | None, series: dict[str, Series], better: Better) -> list[Ratio]:
    if ours is None:
        return []
    found = []
    for key, other in series.items():
        spread = Spread.of(ratios(series[ours].values, other.values, better))
        if key != ours and spread is not None:
            found.append(Ratio(ours=ours, peer=key, spread=spread))
    return found
