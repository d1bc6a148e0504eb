"""What nobody sends is worked out when a page asks: percentiles by the minute, energy by token."""

from collections.abc import Callable

import msgspec
import pytest
from django.contrib.auth.models import User
from django.test import Client

from monitoring.metrics import ENERGY, FIRST_TOKEN_BUCKET, GENERATED_TOKENS, Metric
from monitoring.samples import Sample, Scope, measured
from monitoring.storage.store import store
from tests.dashboard.pages_cast import HARDWARE
from tests.monitoring.cast import frame_of, launch, make_node, now

MINUTES = 4
Columns = dict[str, list[float | None]]
Told = Callable[[float], list[Sample]]
"""What is read so many seconds after the beginning."""


@pytest.fixture
def client(db: None) -> Client:
    browser = Client()
    browser.force_login(User.objects.create_user("ada"))
    return browser


def counter(metric: Metric, value: float, subject: str, scope: Scope, label: str = "") -> Sample:
    return measured(metric, value, source="a test", scope=scope, subject=subject, label=label)


def fill(node: int, told: Told) -> float:
    """Every second of some whole minutes; the beginning of the second one."""
    start = now() // 60 * 60 - 60 * MINUTES
    store([frame_of(node, seq, start + seq, told(float(seq))) for seq in range(60 * MINUTES)])
    return start + 60


def ask(
    client: Client, pk: int, metric: str, since: float
) -> dict[str, dict[str, list[float | None]]]:
    query = {"scope": "deployment", "id": str(pk), "metrics": metric}
    span = {"from": str(since), "to": str(since + 120)}
    told = client.get("/telemetry/series", query | span).json()
    return {
        series["label"]: {name: series[name] for name in ("v", "lo", "hi")}
        for subject in told["subjects"]
        for series in subject["series"]
    }


def test_percentiles_come_from_what_the_bars_grew_by(client: Client) -> None:
    box = make_node()
    deployment = launch("abc", [box])
    # Ten requests a second between 0.1 and 0.5 s, and one a second above the last bound.
    bars = {"le=0.1": 0.0, "le=0.5": 10.0, "le=60": 10.0, "le=+Inf": 11.0}

    def told(seconds: float) -> list[Sample]:
        return [
            counter(FIRST_TOKEN_BUCKET, rate * seconds, "launch:abc", "engine", label)
            for label, rate in bars.items()
        ]

    since = fill(box.pk, told)
    found = ask(client, deployment.pk, "time_to_first_token_quantile_seconds", since)
    assert found["p50"]["v"] == [pytest.approx(0.1 + 0.4 * 0.55)] * 2
    assert (found["p50"]["lo"][0], found["p50"]["hi"][0]) == (0.1, 0.5)
    assert found["p95"]["v"] == [60.0, 60.0]
    assert found["p95"]["hi"] == [None, None]


def test_energy_by_token_is_the_boxes_counters_over_the_tokens(client: Client) -> None:
    box = make_node()
    deployment = launch("abc", [box])

    def told(seconds: float) -> list[Sample]:
        return [
            counter(ENERGY, 120.0 * seconds, "node", "wall"),
            counter(GENERATED_TOKENS, 40.0 * seconds, "launch:abc", "engine"),
        ]

    since = fill(box.pk, told)
    found = ask(client, deployment.pk, "box_energy_per_token_joules", since)
    assert found[""]["v"] == [pytest.approx(3.0)] * 2


def test_where_a_box_tells_no_energy_there_is_no_figure(client: Client) -> None:
    boxes = [make_node(), make_node("box-2")]
    deployment = launch("abc", boxes)

    def told(seconds: float) -> list[Sample]:
        return [
            counter(ENERGY, 120.0 * seconds, "node", "wall"),
            counter(GENERATED_TOKENS, 40.0 * seconds, "launch:abc", "engine"),
        ]

    since = fill(boxes[0].pk, told)
    assert ask(client, deployment.pk, "box_energy_per_token_joules", since) == {}


def test_a_simulated_box_has_no_part_in_what_tokens_take(client: Client) -> None:
    box, made_up = make_node(), make_node("sim-1")
    made_up.inventory = msgspec.to_builtins(msgspec.structs.replace(HARDWARE, simulated=True))
    made_up.save()
    launch("abc", [box])
    fill(made_up.pk, lambda seconds: [counter(ENERGY, 9e6 * seconds, "node", "wall")])

    def told(seconds: float) -> list[Sample]:
        return [
            counter(ENERGY, 120.0 * seconds, "node", "wall"),
            counter(GENERATED_TOKENS, 40.0 * seconds, "launch:abc", "engine"),
        ]

    since = fill(box.pk, told)
    query = {"scope": "fleet", "metrics": "box_energy_per_token_joules"}
    span = {"from": str(since), "to": str(since + 120)}
    subjects = client.get("/telemetry/series", query | span).json()["subjects"]
    assert [s["v"] for subject in subjects for s in subject["series"]] == [[pytest.approx(3.0)] * 2]
