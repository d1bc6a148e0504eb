"""Prometheus itself scrapes the panel, and its own checker has nothing to say."""

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from django.contrib.auth.models import User

from dashboard.models import ApiKey
from dashboard.standings import Standings
from monitoring.export.alerts import FiringAlerts
from monitoring.export.prometheus import render
from tests.monitoring.exporting import box_samples, fill, fill_absent, fill_busy

pytestmark = pytest.mark.prometheus
SECONDS = 30.0
CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: tandem
    params: {{aliases: [vllm]}}
    authorization: {{credentials: {key}}}
    static_configs: [{{targets: ["{target}"]}}]
"""


def nothing() -> None: ...


def check(promtool: Path, page: bytes) -> list[str]:
    """What the checker complains of."""
    done = subprocess.run(
        [promtool, "check", "metrics"], input=page, capture_output=True, timeout=SECONDS
    )
    return (done.stdout + done.stderr).decode().splitlines()


@pytest.mark.django_db
@pytest.mark.parametrize("fleet", [nothing, fill_busy, fill_absent])
def test_the_page_is_as_prometheus_wants_it(promtool: Path, fleet: Callable[[], None]) -> None:
    fleet()
    assert check(promtool, render(Standings(), FiringAlerts())) == []


@pytest.mark.django_db
def test_of_vllms_names_only_their_colon_is_held_against_them(promtool: Path) -> None:
    fill_busy()
    complaints = check(promtool, render(aliases=True))
    assert complaints
    for complaint in complaints:
        assert complaint.startswith("vllm:")
        assert complaint.endswith("metric names should not contain ':'")


@pytest.fixture
def key(transactional_db: None) -> str:
    key = ApiKey(user=User.objects.create_user("prometheus"), name="scrape")
    secret = key.issue()
    key.save()
    return secret


@pytest.fixture
def prometheus(tmp_path: Path, promtool: Path, live_server: object, key: str) -> Iterator[str]:
    """Its address; it scrapes the panel once a second."""
    target = str(live_server).removeprefix("http://")
    (tmp_path / "prometheus.yml").write_text(CONFIG.format(key=key, target=target))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address={address}",
            "--log.level=error",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(SECONDS)


def ask(address: str) -> list[dict[str, object]]:
    """What its API answers; nothing while it starts."""
    try:
        with urlopen(address, timeout=5.0) as answer:
            data = json.load(answer)["data"]
    except (URLError, ConnectionError, TimeoutError):
        return []
    found: list[dict[str, object]] = data.get("result", data.get("activeTargets", []))
    return found


def value(prometheus: str, query: str) -> float | None:
    found = ask(f"{prometheus}/api/v1/query?query={quote(query)}")
    pair = found[0]["value"] if found else None
    return float(pair[1]) if isinstance(pair, list) else None


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"still waiting for {what}"
        time.sleep(0.1)


def test_prometheus_scrapes_the_panel_and_answers_for_it(prometheus: str) -> None:
    fill(box_samples())
    power = 'tandem_power_watts{node="box-1",scope="wall"}'
    until(lambda: value(prometheus, power) == 310.0, "a value in Prometheus")
    (target,) = ask(f"{prometheus}/api/v1/targets")
    assert (target["health"], target["lastError"]) == ("up", "")
    assert value(prometheus, "tandem_energy_joules_total") == 5e6
    assert value(prometheus, "count(tandem_metric_available == 0)") == 1
