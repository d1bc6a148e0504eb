"""Everything there is to read is absent: no page and no endpoint shows a value, least of all 0."""

import json
import time

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import NoReverseMatch, reverse

from dashboard.gateway.upstream import close_session
from dashboard.models import Deployment
from monitoring.metrics import METRICS, Metric
from monitoring.samples import Sample, Scope, unavailable
from monitoring.storage.store import store
from tests.dashboard.absence import in_csv, in_json, in_page, in_prometheus
from tests.dashboard.pages_cast import make_launch, make_model, make_node, operator
from tests.monitoring.cast import frame_of

__all__ = ["operator"]

REASON = "The test reads nothing here."
PAGES = (
    ("overview",),
    ("monitor",),
    ("monitor-energy",),
    ("monitor-noise",),
    ("monitor-costs",),
    ("alerts",),
    ("incidents",),
    ("logs",),
    ("nodes",),
    ("node-detail", "box-1"),
    ("deployments",),
    ("deployment-detail", "smol"),
)
ASKED_AGAIN = (("monitor-state",), ("deployment-engine", "smol"))
"""Parts of pages that are made without blocking: they ask the heads."""
SCOPES = ("fleet", "node", "deployment")
QUANTILES = ",".join(name for name in sorted(METRICS) if "_quantile_" in name)


def absent(metric: Metric, scope: Scope, subject: str) -> Sample:
    return unavailable(metric, REASON, source="a test", scope=scope, subject=subject)


def everything_absent(launch: str) -> list[Sample]:
    """Each metric there is, of each subject it might be read of."""
    engine = f"launch:{launch}"
    power: tuple[Scope, ...] = ("accelerator", "cpu", "host", "wall")
    places: list[tuple[Scope, str]] = [
        ("host", "node"),
        ("accelerator", "gpu:0"),
        ("engine", engine),
        ("engine", f"{engine}:rank0"),
        ("engine", f"{engine}:rank1"),
    ]
    samples = [absent(m, scope, on) for scope, on in places for m in METRICS.values()]
    doubled = [absent(m, scope, "node") for scope in power[1:] for m in METRICS.values()]
    told = {(s.subject, s.metric, s.scope) for s in samples}
    return samples + [s for s in doubled if (s.subject, s.metric, s.scope) not in told]


@pytest.fixture
def fleet(db: None) -> Deployment:
    """Two boxes with an accelerator that say nothing, and a deployment that is loading on them."""
    boxes = [make_node("box-1"), make_node("box-2")]
    for box in boxes:
        assert box.inventory is not None
        device = {"index": 0, "vendor": "nvidia", "name": "Quiet 1", "unified": False}
        box.inventory["accelerators"] = [device]
        box.save()
    model = make_model()
    deployment = Deployment.objects.create(
        name="smol", model=model, wanted=True, settings={"tp": 2}
    )
    launch = make_launch(deployment, *boxes).launch
    now = time.time()
    store(
        [
            frame_of(box.pk, seq, now - 8 + 2 * seq, everything_absent(launch))
            for box in boxes
            for seq in range(4)
        ]
    )
    return deployment


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page[0])
def test_no_page_shows_a_zero(operator: Client, fleet: Deployment, page: tuple[str, ...]) -> None:
    try:
        path = reverse(page[0], args=page[1:])
    except NoReverseMatch:
        pytest.fail(f"There is no page {page[0]}.")
    answer = operator.get(path)
    assert answer.status_code == 200
    assert in_page(answer.content.decode()) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("page", ASKED_AGAIN, ids=lambda page: page[0])
async def test_no_part_that_is_asked_for_again_shows_a_zero(
    fleet: Deployment, page: tuple[str, ...]
) -> None:
    client = AsyncClient()
    await client.aforce_login(await User.objects.acreate(username="lin"))
    try:
        answer = await client.get(reverse(page[0], args=page[1:]))
    finally:
        await close_session()
    assert answer.status_code == 200
    assert in_page(answer.content.decode()) == []


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("metrics", ["", QUANTILES], ids=["raw", "quantiles"])
def test_no_series_holds_a_number(
    operator: Client, fleet: Deployment, scope: str, metrics: str
) -> None:
    query = {"scope": scope, "minutes": "5", "metrics": metrics, **which(scope, fleet)}
    told = operator.get("/telemetry/series", query).json()
    assert list(in_json(told)) == []
    if not metrics:
        reasons = {one["reason"] for subject in told["subjects"] for one in subject["series"]}
        assert reasons == {REASON}


@pytest.mark.parametrize("scope", SCOPES)
def test_no_cell_of_a_table_holds_a_number(operator: Client, fleet: Deployment, scope: str) -> None:
    answer = operator.get("/telemetry/series.csv", {"scope": scope, **which(scope, fleet)})
    assert answer.status_code == 200
    assert in_csv(answer.getvalue().decode()) == []


def test_prometheus_gets_no_sample_but_the_reason(operator: Client, fleet: Deployment) -> None:
    text = operator.get("/metrics").content.decode()
    assert in_prometheus(text, frozenset(f"tandem_{name}" for name in METRICS)) == []
    assert REASON in text


def which(scope: str, deployment: Deployment) -> dict[str, str]:
    node = deployment.replicas.get().head_node_id
    return {"fleet": {}, "node": {"id": str(node)}, "deployment": {"id": str(deployment.pk)}}[scope]


def test_the_search_finds_what_it_looks_for() -> None:
    assert in_page("<p title='x'>Power <b>0</b> W</p>")
    assert in_page("<td>0.0 GiB</td>")
    assert not in_page("<p>0 of 2 ready, 10 W, 1.0 s, 20 % at 10:00 s</p><select>0 W</select>")
    assert list(in_json(json.loads('{"v": [null, 0.0], "t": [0]}'))) == ["v: 0.0"]
    assert in_csv("time,seconds,a\nx,12.5,0\n") == ["0"]
    assert in_prometheus("tandem_power_watts 0.0\n", frozenset({"tandem_power_watts"}))
