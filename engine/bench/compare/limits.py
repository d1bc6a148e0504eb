"""How far a decode step is from what the machine could do at best. Pure."""

from collections.abc import Sequence

import msgspec

from engine.bench.compare.players.asks import Opened
from engine.bench.compare.spread import Spread


class Distance(msgspec.Struct, frozen=True, kw_only=True):
    """One contestant's decode at one batch size, against the machine's limits."""

    key: str
    batch: int
    step_seconds: float
    step_bytes: int
    """Weights once, and everybody's keys and values."""
    gigabytes_per_second: float
    of_bandwidth: float
    """Share of what the machine reads at best."""
    operations: int
    """Of the matrices, in a step."""
    of_int8: float | None
    """The int8 matrices' own time, as a share of the step; None where it was not measured."""
    of_fp32: float | None
    """The same for float32 matrices."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    bandwidth: Spread
    """Gigabytes per second that all threads read together."""
    multiply: dict[str, Spread]
    """Milliseconds of all matrices of the model once: `int8-32` is torch._int_mm with 32 rows,
    `quantized-32` int8 through torch's quantised models, `fp32-32` a plain float32 product."""
    operations_per_second: dict[str, float]
    """By the same names, in 10^9."""
    token_operations: int
    distances: list[Distance]


def limits_of(
    machine: dict[str, list[float]],
    token_operations: int,
    context: int,
    rates: dict[tuple[str, int], float],
    opened: dict[str, Opened],
) -> Limits | None:
    """`rates`: tokens per second by contestant and batch. None of an unmeasured machine."""
    bandwidth = Spread.of([value / 1e9 for value in machine.get("bandwidth", [])])
    if bandwidth is None:
        return None
    multiply = {
        name: spread
        for name, values in machine.items()
        if name != "bandwidth" and (spread := Spread.of([1e3 * value for value in values]))
    }
    distances = [
        _distance(
            key, batch, rate, opened[key], context, bandwidth.high, multiply, token_operations
        )
        for (key, batch), rate in rates.items()
        if opened[key].step_bytes is not None
    ]
    return Limits(
        bandwidth=bandwidth,
        multiply=multiply,
        operations_per_second={
            name: _rate(token_operations * int(name.partition("-")[2]), spread.low)
            for name, spread in multiply.items()
        },
        token_operations=token_operations,
        distances=distances,
    )


def _rate(operations: int, milliseconds: float) -> float:
    return round(operations / milliseconds / 1e6, 1)


def _distance(
    key: str,
    batch: int,
    rate: float,
    opened: Opened,
    context: int,
    bandwidth: float,
    multiply: dict[str, Spread],
    token_operations: int,
) -> Distance:
    seconds = batch / rate
    nbytes = (opened.step_bytes or 0) + batch * context * (opened.kv_token_bytes or 0)
    speed = nbytes / seconds / 1e9
    # The quicker of the two ways to multiply int8 is the limit.
    shares = [_share(multiply.get(f"{kind}-{batch}"), seconds) for kind in ("int8", "quantized")]
    return Distance(
        key=key,
        batch=batch,
        step_seconds=seconds,
        step_bytes=nbytes,
        gigabytes_per_second=round(speed, 2),
        of_bandwidth=round(speed / bandwidth, 3),
        operations=batch * token_operations,
        of_int8=min(filter(None, shares), default=None),
        of_fp32=_share(multiply.get(f"fp32-{batch}"), seconds),
    )


def _share(spread: Spread | None, seconds: float) -> float | None:
    return None if spread is None else round(spread.low / 1e3 / seconds, 3)


def best_distance(distances: Sequence[Distance], keys: set[str], batch: int) -> Distance | None:
    """The quickest step of those."""
    found = [each for each in distances if each.key in keys and each.batch == batch]
    return min(found, key=lambda each: each.step_seconds, default=None)
