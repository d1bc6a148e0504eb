"""A page seeds its charts from the stored past."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from monitoring.frames import check_frame
from monitoring.seed import thin
from monitoring.store import store
from tests.monitoring.cast import (
    NO_GPU,
    engine_samples,
    launch,
    make_node,
    node_samples,
    now,
)


@pytest.fixture
def client(db: None) -> Client:
    browser = Client()
    browser.force_login(User.objects.create_user("ada"))
    return browser


def fill(node: int, seconds: int, launched: str = "", skip: range = range(0)) -> None:
    start, arrived = now() - seconds, timezone.now()
    frames = [
        check_frame(
            node,
            second,
            start + second,
            [*node_samples(second / 1000), *(engine_samples(launched) if launched else [])],
            arrived,
        )
        for second in range(seconds)
        if second not in skip
    ]
    store(frames)


def test_a_node_is_seeded_with_values_kinds_and_reasons(client: Client) -> None:
    node = make_node()
    fill(node.pk, 20)
    answer = client.get(
        "/telemetry/seed", {"scope": "node", "id": str(node.pk), "minutes": "5"}
    ).json()
    (subject,) = answer["subjects"]
    assert subject["label"] == "box-1"
    cpu = subject["metrics"]["cpu_utilization_ratio"]
    assert len(subject["t"]) == len(cpu["v"]) == 20
    assert (cpu["kind"], cpu["source"]) == ("measured", "host: /proc/stat")
    gpu = subject["metrics"]["gpu_utilization_ratio"]
    assert set(gpu["v"]) == {None}
    assert gpu["reason"] == NO_GPU


def test_times_are_seconds_after_the_start_of_the_span(client: Client) -> None:
    node = make_node()
    fill(node.pk, 10)
    answer = client.get("/telemetry/seed", {"scope": "fleet", "minutes": "5"}).json()
    assert answer["now"] - answer["from"] == pytest.approx(300)
    times = answer["subjects"][0]["t"]
    assert times == sorted(times)
    assert 280 < times[0] < times[-1] <= 300


def test_a_pause_is_a_gap_and_not_a_line(client: Client) -> None:
    node = make_node()
    fill(node.pk, 60, skip=range(20, 40))
    answer = client.get(
        "/telemetry/seed", {"scope": "node", "id": str(node.pk), "minutes": "5"}
    ).json()
    values = answer["subjects"][0]["metrics"]["cpu_utilization_ratio"]["v"]
    assert values.count(None) == 1
    assert values[20] is None


def test_a_deployment_shows_its_nodes_its_engine_and_its_ranks(client: Client) -> None:
    node = make_node()
    deployment = launch("abc", [node, node])
    fill(node.pk, 5, "abc")
    answer = client.get("/telemetry/seed", {"scope": "deployment", "id": str(deployment.pk)}).json()
    assert [(s["topic"], s["role"]) for s in answer["subjects"]] == [
        (f"{node.pk}/node", "node"),
        ("launch:abc", "engine"),
        ("launch:abc:rank0", "rank"),
        ("launch:abc:rank1", "rank"),
    ]
    speed = answer["subjects"][1]["metrics"]["generation_tokens_per_second"]
    assert speed["v"] == [40.0] * 5


def test_an_ended_launch_is_not_shown(client: Client) -> None:
    node = make_node()
    deployment = launch("abc", [node])
    deployment.replicas.update(ended_at=timezone.now(), status="stopped")
    fill(node.pk, 5, "abc")
    answer = client.get("/telemetry/seed", {"scope": "deployment", "id": str(deployment.pk)}).json()
    assert answer["subjects"] == []


def test_older_readings_than_the_span_are_left_out(client: Client) -> None:
    node = make_node()
    store([check_frame(node.pk, 1, now() - 400, node_samples(), timezone.now())])
    answer = client.get("/telemetry/seed", {"scope": "fleet", "minutes": "5"}).json()
    assert answer["subjects"][0]["t"] == []


def test_an_hour_comes_in_no_more_points_than_a_screen_shows(client: Client) -> None:
    node = make_node()
    fill(node.pk, 3500)
    answer = client.get("/telemetry/seed", {"scope": "fleet", "minutes": "60"}).json()
    values = answer["subjects"][0]["metrics"]["cpu_utilization_ratio"]["v"]
    assert len(values) <= 1000
    assert max(values) == pytest.approx(3.499)
    assert min(values) == 0


@pytest.mark.parametrize(
    "query",
    [{"scope": "moon"}, {}, {"scope": "fleet", "minutes": "7"}, {"scope": "node", "id": "x"}],
)
def test_a_malformed_question_is_refused(client: Client, query: dict[str, str]) -> None:
    answer = client.get("/telemetry/seed", query)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_nobody_sees_telemetry_without_signing_in(db: None) -> None:
    assert Client().get("/telemetry/seed", {"scope": "fleet"}).status_code == 401


def test_a_removed_thing_has_no_subjects(client: Client) -> None:
    answer = client.get("/telemetry/seed", {"scope": "node", "id": str(987654)})
    assert answer.json()["subjects"] == []


@given(
    st.lists(st.none() | st.floats(-1e6, 1e6), min_size=1, max_size=400),
    st.integers(min_value=2, max_value=50),
)
def test_thinning_keeps_the_extremes_and_the_order(values: list[float | None], most: int) -> None:
    rows = [(float(index), (value,)) for index, value in enumerate(values)]
    thinned = thin(rows, most)
    assert len(thinned) <= max(most + 2, 2)
    assert [at for at, _n in thinned] == sorted(at for at, _n in thinned)
    known = [value for value in values if value is not None]
    kept = [numbers[0] for _at, numbers in thinned if numbers[0] is not None]
    if known:
        assert (min(kept), max(kept)) == (min(known), max(known))
    else:
        assert kept == []


def test_the_span_is_measured_from_now(client: Client) -> None:
    answer = client.get("/telemetry/seed", {"scope": "fleet", "minutes": "15"}).json()
    assert abs(answer["now"] - timezone.now().timestamp()) < timedelta(minutes=1).total_seconds()
