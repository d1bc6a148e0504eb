"""What is aimed at, and whether this run met it. Pure."""

from collections.abc import Callable

from engine.bench.compare.limits import Limits, best_distance
from engine.bench.compare.report import Row, Verdict
from engine.bench.compare.spread import Spread, ratios

NO_PEER = "No peer took part that does this."
NOT_MEASURED = "It was not measured."
AGAINST_BEST = {"decode-1": 1.3, "decode-4": 2.0, "decode-32": 3.0, "prefill-1024": 4.0}
SHARED = 15.0
SERVING, SERVING_PEER = 2.5, "vllm"
START_SECONDS = 8.0
NOISY_TIMES = 2.5
OF_LIMIT = 0.5


def verdicts(rows: list[Row], limits: Limits | None) -> list[Verdict]:
    """One for each target whose figure is among `rows`."""
    by_name = {row.name: row for row in rows}
    found = [
        _against_best(by_name[name], least)
        for name, least in AGAINST_BEST.items()
        if name in by_name
    ]
    makers: dict[str, Callable[[dict[str, Row]], list[Verdict]]] = {
        "first-shared": _shared,
        "serve": _serving,
        "load": _start,
        "noisy-times": _noisy,
    }
    for name, make in makers.items():
        if name in by_name:
            found += make(by_name)
    own = {row.ours for row in rows if row.ours}
    return found + (_distances(limits, own) if limits else [])


def _against_best(row: Row, least: float) -> Verdict:
    return _at_least(
        row.title,
        f"at least {least:g} × the best peer",
        row.against(row.peer),
        least,
        NO_PEER if row.peer is None else NOT_MEASURED,
        f"{row.ours} against {row.peer}" if row.peer else row.ours or "",
    )


def _shared(rows: dict[str, Row]) -> list[Verdict]:
    shared, cold = rows["first-shared"], rows.get("first-cold")
    spread = None
    if shared.ours and cold:
        own = shared.ours
        spread = Spread.of(ratios(shared.series[own].values, cold.series[own].values, "less"))
    what = f"{shared.title}: cold over shared"
    target = f"at least {SHARED:g} × quicker than cold"
    return [_at_least(what, target, spread, SHARED, NOT_MEASURED, shared.ours or "")]


def _serving(rows: dict[str, Row]) -> list[Verdict]:
    row, wait = rows["serve"], rows["serve-ttft-p95"]
    who = f"{row.ours} against {SERVING_PEER}"
    return [
        _at_least(
            row.title,
            f"at least {SERVING:g} × vLLM",
            row.against(SERVING_PEER),
            SERVING,
            NO_PEER,
            who,
        ),
        _at_least(
            wait.title,
            "lower than vLLM's",
            wait.against(SERVING_PEER),
            1.0,
            NO_PEER,
            f"{wait.ours} against {SERVING_PEER}",
        ),
    ]


def _start(rows: dict[str, Row]) -> list[Verdict]:
    row = rows["load"]
    return [_at_most(row, f"at most {START_SECONDS:g} s", START_SECONDS)]


def _noisy(rows: dict[str, Row]) -> list[Verdict]:
    row = rows["noisy-times"]
    return [_at_most(row, f"at most {NOISY_TIMES:g} × slower than alone", NOISY_TIMES)]


def _distances(limits: Limits, own: set[str]) -> list[Verdict]:
    found = []
    alone = best_distance(limits.distances, own, 1)
    if alone is not None:
        found.append(
            _share(
                "Decode, batch 1: share of the memory's bandwidth", alone.of_bandwidth, alone.key
            )
        )
    many = best_distance(limits.distances, own, 32)
    if many is not None and many.of_int8 is not None:
        found.append(
            _share("Decode, batch 32: int8 matrices' own time in a step", many.of_int8, many.key)
        )
    return found


def _share(what: str, value: float, who: str) -> Verdict:
    target = f"at least {100 * OF_LIMIT:g} %"
    return Verdict(
        what=what, target=target, found=value, spread=None, met=value >= OF_LIMIT, who=who
    )


def _at_least(
    what: str, target: str, spread: Spread | None, least: float, reason: str, who: str
) -> Verdict:
    if spread is None:
        return Verdict(what=what, target=target, found=None, spread=None, met=None, reason=reason)
    met = spread.median >= least
    return Verdict(what=what, target=target, found=spread.median, spread=spread, met=met, who=who)


def _at_most(row: Row, target: str, most: float) -> Verdict:
    spread = row.spread(row.ours)
    if spread is None:
        return Verdict(
            what=row.title, target=target, found=None, spread=None, met=None, reason=NOT_MEASURED
        )
    return Verdict(
        what=row.title,
        target=target,
        found=spread.median,
        spread=spread,
        met=spread.median <= most,
        who=row.ours or "",
    )
