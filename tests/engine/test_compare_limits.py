"""The distance from the machine's limits is a share of what was measured in the same run."""

import pytest

from engine.bench.compare.limits import limits_of
from engine.bench.compare.players.asks import Opened
from engine.bench.compare.weights import kv_token_bytes, operations, shapes, step_bytes
from tests.engine.bundled import bundled_checkpoint

MODEL = bundled_checkpoint().config


def test_a_step_of_int8_reads_as_many_bytes_as_the_model_has_weights() -> None:
    weights = sum(rows * columns for rows, columns in shapes(MODEL))
    assert weights == 134_479_872
    assert operations(MODEL) == 2 * weights
    assert step_bytes(MODEL, "fp32", 32) == 4 * weights
    assert weights < step_bytes(MODEL, "int8", 32) < 1.01 * weights
    assert step_bytes(MODEL, "int4", 32) < 0.75 * weights


def test_keys_and_values_take_what_their_number_type_takes() -> None:
    assert kv_token_bytes(MODEL, "fp32") == 30 * 3 * 2 * 64 * 4
    assert kv_token_bytes(MODEL, "int8") == 30 * 3 * 2 * (64 + 4)


def test_shares_are_of_the_best_that_the_machine_did() -> None:
    machine = {"bandwidth": [18e9, 20e9], "int8-32": [0.05, 0.04], "fp32-1": [0.02]}
    opened = Opened(name="x", how="", works=[], step_bytes=100_000_000, kv_token_bytes=0)
    rates = {("x", 1): 100.0, ("x", 32): 400.0}
    limits = limits_of(machine, 200_000_000, 256, rates, {"x": opened})
    assert limits is not None
    one, many = limits.distances
    assert one.gigabytes_per_second == 10.0
    assert one.of_bandwidth == pytest.approx(10 / limits.bandwidth.high, rel=1e-2)
    assert one.of_int8 is None
    assert many.step_seconds == pytest.approx(0.08)
    assert many.of_int8 == pytest.approx(1e-3 * limits.multiply["int8-32"].low / 0.08, rel=1e-2)
    assert many.operations == 32 * 200_000_000


def test_an_unmeasured_machine_has_no_limits() -> None:
    assert limits_of({}, 1, 1, {}, {}) is None


def test_of_two_ways_to_multiply_int8_the_quicker_is_the_limit() -> None:
    machine = {"bandwidth": [20e9], "int8-4": [0.8], "quantized-4": [0.02]}
    opened = Opened(name="x", how="", works=[], step_bytes=100_000_000, kv_token_bytes=0)
    limits = limits_of(machine, 200_000_000, 256, {("x", 4): 100.0}, {"x": opened})
    assert limits is not None
    assert limits.distances[0].of_int8 == pytest.approx(0.5)
