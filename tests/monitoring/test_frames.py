"""A frame is checked before anything of it is kept."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.frames import NEGATIVE, NO_REASON, NOT_FINITE, Frame, check_frame
from monitoring.metrics import CPU_UTILIZATION, TEMPERATURE
from monitoring.samples import Sample, measured

ARRIVED = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
AT = ARRIVED.timestamp()


def checked(*samples: Sample, at: float = AT) -> Frame:
    return check_frame(1, 1, at, samples, ARRIVED)


def sample(value: float | None, **changes: str) -> Sample:
    fields = {
        "metric": "cpu_utilization_ratio",
        "unit": "ratio",
        "source": "test",
        "kind": "measured",
        "scope": "host",
        **changes,
    }
    return Sample(value=value, **fields)  # type: ignore[arg-type]  # literals given as strings


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_absent_with_its_reason(value: float) -> None:
    (reading,) = checked(sample(value)).readings
    assert reading.values()["cpu_utilization_ratio"] is None
    assert reading.absent() == {"cpu_utilization_ratio": NOT_FINITE}


def test_a_negative_ratio_is_absent_but_a_frost_is_measured() -> None:
    cold = measured(TEMPERATURE, -4.0, source="hwmon", scope="host")
    (reading,) = checked(sample(-0.1), cold).readings
    assert reading.absent() == {"cpu_utilization_ratio": NEGATIVE}
    assert reading.values()["temperature_celsius"] == -4.0


def test_an_absent_value_without_a_reason_says_so() -> None:
    (reading,) = checked(sample(None)).readings
    assert reading.absent() == {"cpu_utilization_ratio": NO_REASON}


@pytest.mark.parametrize("metric", ["", "Upper", "a b", "x" * 80, "a;drop"])
def test_a_malformed_metric_is_left_out_and_reported(metric: str) -> None:
    frame = checked(sample(1.0, metric=metric), sample(0.5))
    assert frame.readings[0].values()["cpu_utilization_ratio"] == 0.5
    assert len(frame.refused) == 1


@pytest.mark.parametrize("subject", ["", "Node", "launch:", "launch:a b", "x:" + "y" * 200])
def test_a_malformed_subject_is_left_out_and_reported(subject: str) -> None:
    frame = checked(sample(1.0, subject=subject))
    assert [reading.subject for reading in frame.readings] == ["node"]
    assert len(frame.refused) == 1


@pytest.mark.parametrize(
    "at", [math.nan, math.inf, 1e30, -1e30, 0.0, AT + timedelta(days=2).total_seconds()]
)
def test_an_impossible_time_refuses_the_frame(at: float) -> None:
    frame = checked(sample(1.0), at=at)
    assert frame.readings == []
    assert len(frame.refused) == 1


def test_the_clocks_difference_is_itself_a_reading() -> None:
    (reading,) = checked(sample(0.5), at=AT - 7.5).readings
    assert reading.values()["clock_skew_seconds"] == 7.5


@given(st.lists(st.floats() | st.none(), min_size=1, max_size=20))
def test_every_value_is_either_finite_or_has_a_reason(values: list[float | None]) -> None:
    samples = [
        sample(value, metric=f"metric_{index}", subject=f"launch:{index % 3}")
        for index, value in enumerate(values)
    ]
    for reading in checked(*samples).readings:
        assert len(reading.fields) == len(reading.numbers)
        for metric, number in reading.values().items():
            if number is None:
                assert reading.absent()[metric]
            else:
                assert math.isfinite(number)


def test_the_layout_depends_on_reasons_and_not_on_numbers() -> None:
    (a,) = checked(sample(0.1)).readings
    (b,) = checked(sample(0.9)).readings
    (c,) = checked(sample(None, kind="unavailable", reason="gone")).readings
    assert a.digest == b.digest != c.digest


def test_readings_keep_the_metric_contract() -> None:
    (reading,) = checked(measured(CPU_UTILIZATION, 0.3, source="s", scope="host")).readings
    assert reading.fields[0] == ("cpu_utilization_ratio", "ratio", "s", "measured", "host", "")
