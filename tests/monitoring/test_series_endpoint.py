"""A page asks for the stored past of what it shows."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from monitoring.storage.store import store
from tests.monitoring.cast import (
    NO_GPU,
    engine_samples,
    frame_of,
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
    start = now() - seconds
    store(
        [
            frame_of(
                node,
                second,
                start + second,
                [*node_samples(second / 1000), *(engine_samples(launched) if launched else [])],
            )
            for second in range(seconds)
            if second not in skip
        ]
    )


def ask(client: Client, scope: str, pk: int | None = None, **query: object) -> dict[str, Any]:
    given = {"scope": scope, **({} if pk is None else {"id": str(pk)}), **query}
    answer = client.get("/telemetry/series", {name: str(value) for name, value in given.items()})
    assert answer.status_code == 200, answer.content
    told: dict[str, Any] = answer.json()
    return told


def series(subject: dict[str, Any], metric: str) -> dict[str, Any]:
    (found,) = [one for one in subject["series"] if one["metric"] == metric]
    return dict(found)


def test_a_node_comes_with_values_kinds_and_reasons(client: Client) -> None:
    node = make_node()
    fill(node.pk, 20)
    answer = ask(client, "node", node.pk, minutes=5)
    (subject,) = answer["subjects"]
    assert (subject["label"], subject["role"], subject["node"]) == ("box-1", "node", node.pk)
    cpu = series(subject, "cpu_utilization_ratio")
    assert cpu["key"] == "cpu_utilization_ratio@host"
    assert len(subject["t"]) == len(cpu["v"]) == 20
    assert cpu["v"][-1] == pytest.approx(0.019)
    assert (cpu["kind"], cpu["source"]) == ("measured", "host: /proc/stat")
    assert (answer["level"], answer["step"], cpu["lo"], cpu["hi"]) == ("second", 1, None, None)


def test_an_absent_value_is_null_and_says_why(client: Client) -> None:
    node = make_node()
    fill(node.pk, 5)
    (subject,) = ask(client, "node", node.pk, metrics="gpu_utilization_ratio")["subjects"]
    gpu = series(subject, "gpu_utilization_ratio")
    assert set(gpu["v"]) == {None}
    assert (gpu["kind"], gpu["reason"]) == ("unavailable", NO_GPU)


def test_times_are_seconds_after_the_start_of_the_span(client: Client) -> None:
    node = make_node()
    fill(node.pk, 10)
    answer = ask(client, "fleet", minutes=5)
    assert answer["to"] - answer["from"] == pytest.approx(300)
    times = answer["subjects"][0]["t"]
    assert times == sorted(times)
    assert 280 < times[0] < times[-1] <= 300
    assert abs(answer["now"] - timezone.now().timestamp()) < 60


def test_a_span_may_be_given_from_then_to_then(client: Client) -> None:
    node = make_node()
    fill(node.pk, 60)
    end = now() - 20
    answer = ask(client, "node", node.pk, **{"from": end - 20, "to": end})
    assert (answer["from"], answer["to"]) == (pytest.approx(end - 20), pytest.approx(end))
    assert len(answer["subjects"][0]["t"]) in (19, 20, 21)


def test_a_pause_is_a_gap_and_not_a_line(client: Client) -> None:
    node = make_node()
    fill(node.pk, 60, skip=range(20, 40))
    (subject,) = ask(client, "node", node.pk, minutes=5)["subjects"]
    values = series(subject, "cpu_utilization_ratio")["v"]
    assert values.count(None) == 1
    assert values[20] is None


def test_a_deployment_has_its_nodes_its_engine_and_its_ranks(client: Client) -> None:
    node = make_node()
    deployment = launch("abc", [node, node])
    fill(node.pk, 5, "abc")
    answer = ask(client, "deployment", deployment.pk)
    told = [(s["topic"], s["role"], s["rank"]) for s in answer["subjects"] if s["role"] != "gpu"]
    assert told == [
        (f"{node.pk}/node", "node", None),
        ("launch:abc", "engine", None),
        ("launch:abc:rank0", "rank", 0),
        ("launch:abc:rank1", "rank", 1),
    ]
    engine = next(s for s in answer["subjects"] if s["role"] == "engine")
    assert series(engine, "generation_tokens_per_second")["v"] == [40.0] * 5


def test_an_ended_launch_is_not_shown(client: Client) -> None:
    node = make_node()
    deployment = launch("abc", [node])
    deployment.replicas.update(ended_at=timezone.now(), status="stopped")
    fill(node.pk, 5, "abc")
    assert ask(client, "deployment", deployment.pk)["subjects"] == []


def test_an_hour_keeps_its_extremes_in_as_many_points_as_asked(client: Client) -> None:
    node = make_node()
    fill(node.pk, 3500)
    answer = ask(client, "fleet", minutes=60, points=300)
    cpu = series(answer["subjects"][0], "cpu_utilization_ratio")
    assert len(cpu["v"]) <= 302
    assert answer["step"] == 12
    assert max(x for x in cpu["hi"] if x is not None) == pytest.approx(3.499)
    assert min(x for x in cpu["lo"] if x is not None) == 0


@pytest.mark.parametrize(
    "query",
    [
        {"scope": "moon"},
        {},
        {"scope": "fleet", "minutes": "-7"},
        {"scope": "fleet", "points": "1"},
        {"scope": "node", "id": "x"},
        {"scope": "fleet", "from": "nan"},
        {"scope": "fleet", "from": "20", "to": "10"},
        {"scope": "fleet", "from": "-1"},
        {"scope": "fleet", "metrics": "moonshine"},
    ],
)
def test_a_malformed_question_is_refused(client: Client, query: dict[str, str]) -> None:
    for path in ("/telemetry/series", "/telemetry/series.csv"):
        answer = client.get(path, query)
        assert answer.status_code == 400
        assert answer.json()["error"]


def test_nobody_sees_telemetry_without_signing_in(db: None) -> None:
    for path in ("/telemetry/series", "/telemetry/series.csv"):
        assert Client().get(path, {"scope": "fleet"}).status_code == 401


def test_a_removed_thing_has_no_subjects(client: Client) -> None:
    assert ask(client, "node", 987654)["subjects"] == []
