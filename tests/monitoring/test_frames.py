"""A frame is checked before anything of it is kept."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.live.frames import (
    NEGATIVE,
    NO_REASON,
    NOT_FINITE,
    Frame,
    Layouts,
    SubjectReading,
)
from monitoring.metrics import CPU_UTILIZATION, TEMPERATURE
from monitoring.packing import Layout, Numbers, Packer
from monitoring.samples import Sample, measured, unavailable

ARRIVED = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
AT = ARRIVED.timestamp()


def checked(*samples: Sample, at: float = AT) -> Frame:
    """As a new connection brings it."""
    layouts, packed = Layouts(), Packer().pack(samples)
    refused = layouts.learn(layout for layout, _numbers in packed)
    readings = [(layout.number, numbers) for layout, numbers in packed]
    frame = layouts.frame(1, 1, at, readings, ARRIVED)
    frame.refused[:0] = refused
    return frame


def values(reading: SubjectReading) -> dict[str, float | None]:
    return {field[0]: n for field, n in zip(reading.fields, reading.numbers, strict=True)}


def absent(reading: SubjectReading) -> dict[str, str]:
    return {field[0]: field[5] for field in reading.fields if field[3] == "unavailable"}


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
    assert values(reading)["cpu_utilization_ratio"] is None
    assert absent(reading) == {"cpu_utilization_ratio": NOT_FINITE}


def test_a_negative_ratio_is_absent_but_a_frost_is_measured() -> None:
    cold = measured(TEMPERATURE, -4.0, source="hwmon", scope="host")
    (reading,) = checked(sample(-0.1), cold).readings
    assert absent(reading) == {"cpu_utilization_ratio": NEGATIVE}
    assert values(reading)["temperature_celsius"] == -4.0


def test_an_absent_value_without_a_reason_says_so() -> None:
    (reading,) = checked(sample(None)).readings
    assert absent(reading) == {"cpu_utilization_ratio": NO_REASON}


@pytest.mark.parametrize("metric", ["", "Upper", "a b", "x" * 80, "a;drop"])
def test_a_malformed_metric_is_left_out_and_reported(metric: str) -> None:
    frame = checked(sample(1.0, metric=metric), sample(0.5))
    assert values(frame.readings[0])["cpu_utilization_ratio"] == 0.5
    assert len(frame.refused) == 1


@pytest.mark.parametrize("subject", ["", "Node", "launch:", "launch:a b", "x:" + "y" * 200])
def test_a_malformed_subject_is_left_out_and_reported(subject: str) -> None:
    frame = checked(sample(1.0, subject=subject), sample(0.5))
    assert [reading.subject for reading in frame.readings] == ["node"]
    assert len(frame.refused) == 1


@pytest.mark.parametrize(
    "at", [math.nan, math.inf, 1e30, -1e30, 0.0, AT + timedelta(days=2).total_seconds()]
)
def test_an_impossible_time_refuses_the_frame(at: float) -> None:
    frame = checked(sample(1.0), at=at)
    assert frame.readings == []
    assert len(frame.refused) == 1


@given(st.lists(st.floats() | st.none(), min_size=1, max_size=20))
def test_every_value_is_either_finite_or_has_a_reason(told: list[float | None]) -> None:
    samples = [
        sample(value, metric=f"metric_{index}", subject=f"launch:{index % 3}")
        for index, value in enumerate(told)
    ]
    for reading in checked(*samples).readings:
        assert len(reading.fields) == len(reading.numbers)
        for metric, number in values(reading).items():
            if number is None:
                assert absent(reading)[metric]
            else:
                assert math.isfinite(number)


def test_the_layout_depends_on_reasons_and_not_on_numbers() -> None:
    (a,) = checked(sample(0.1)).readings
    (b,) = checked(sample(0.9)).readings
    (c,) = checked(sample(None, kind="unavailable", reason="gone")).readings
    assert a.layout.digest == b.layout.digest != c.layout.digest


def test_readings_keep_the_metric_contract() -> None:
    (reading,) = checked(measured(CPU_UTILIZATION, 0.3, source="s", scope="host")).readings
    assert reading.fields[0] == ("cpu_utilization_ratio", "ratio", "s", "measured", "host", "", "")


def test_what_is_told_later_needs_no_telling_again() -> None:
    layouts, packer = Layouts(), Packer()
    ((layout, first),) = packer.pack([sample(0.1)])
    ((again, second),) = packer.pack([sample(0.2)])
    assert again is layout
    layouts.learn([layout])
    for numbers in (first, second):
        (reading,) = layouts.frame(1, 1, AT, [(layout.number, numbers)], ARRIVED).readings
        assert reading.numbers == numbers


def test_a_reading_that_was_not_told_of_is_refused() -> None:
    layouts = Layouts()
    ((layout, numbers),) = Packer().pack([sample(0.1)])
    unknown = layouts.frame(1, 1, AT, [(layout.number, numbers)], ARRIVED)
    assert (unknown.readings, len(unknown.refused)) == ([], 1)
    layouts.learn([layout])
    short = layouts.frame(1, 1, AT, [(layout.number, ())], ARRIVED)
    assert (short.readings, len(short.refused)) == ([], 1)


def test_readings_of_one_metric_with_labels_are_kept_apart() -> None:
    fans = [sample(1.0, label="fan1"), sample(2.0, label="fan2"), sample(3.0, label="fan1")]
    frame = checked(*fans)
    assert frame.readings[0].numbers == (1.0, 2.0)
    assert len(frame.refused) == 1


@given(
    st.lists(
        st.tuples(st.booleans(), st.booleans(), st.none() | st.floats(width=32)),
        min_size=1,
        max_size=12,
    )
)
def test_the_quick_look_passes_only_what_the_close_one_would(
    told: list[tuple[bool, bool, float | None]],
) -> None:
    samples = [
        (unavailable(metric, "gone", source="s", scope="host", label=str(index)))
        if gone
        else measured(metric, 1.0, source="s", scope="host", label=str(index))
        for index, (gone, signed, _number) in enumerate(told)
        for metric in [TEMPERATURE if signed else CPU_UTILIZATION]
    ]
    ((layout, _numbers),) = Packer().pack(samples)
    numbers = tuple(number for _gone, _signed, number in told)
    (reading,) = _frame_of(layout, numbers).readings
    expected = tuple(
        number
        if not gone and number is not None and math.isfinite(number) and (signed or number >= 0)
        else None
        for gone, signed, number in told
    )
    assert reading.numbers == expected
    for field, number in zip(reading.fields, reading.numbers, strict=True):
        assert (field[3] == "unavailable") == (number is None) == bool(field[5])


def _frame_of(layout: Layout, numbers: Numbers) -> Frame:
    layouts = Layouts()
    layouts.learn([layout])
    return layouts.frame(1, 1, AT, [(layout.number, numbers)], ARRIVED)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"kind": "guessed"}, "'guessed' of cpu_utilization_ratio is no kind of reading."),
        (
            {"metric": "queue_seconds_bucket", "label": "le=soon"},
            "'le=soon' of queue_seconds_bucket is no bound of a histogram.",
        ),
        ({"subject": "group:gpu"}, "'group:gpu' is no subject."),
    ],
)
def test_what_no_page_could_show_is_refused(changes: dict[str, str], why: str) -> None:
    frame = checked(sample(1.0, **changes))
    assert (frame.readings, frame.refused[:1]) == ([], [why])


def test_null_characters_are_left_out() -> None:
    (reading,) = checked(sample(1.0, source="a\x00b", label="\x00c")).readings
    assert (reading.fields[0][2], reading.fields[0][6]) == ("ab", "c")


def test_two_scopes_that_are_cut_to_the_same_are_one_series() -> None:
    long = "s" * 20
    frame = checked(sample(1.0, scope=long + "a"), sample(2.0, scope=long + "b"))
    assert values(frame.readings[0]) == {"cpu_utilization_ratio": 1.0}
    assert frame.refused == ["cpu_utilization_ratio of node is told twice."]


def test_a_subject_has_one_reading_in_a_frame() -> None:
    layouts, packer = Layouts(), Packer()
    ((first, one),) = packer.pack([sample(1.0)])
    ((second, two),) = packer.pack([sample(2.0, source="another")])
    assert layouts.learn([first, second]) == []
    frame = layouts.frame(1, 1, AT, [(first.number, one), (second.number, two)], ARRIVED)
    assert [values(reading) for reading in frame.readings] == [{"cpu_utilization_ratio": 1.0}]
    assert frame.refused == ["node is read twice in one frame."]
