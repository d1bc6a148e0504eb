"""The shipped board asks only for what is exported, and fits any Grafana as it is."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

import monitoring
from monitoring.export.names import exported_name
from monitoring.metrics import METRICS

FOLDER = Path(monitoring.__file__).parent / "grafana"
ELSEWHERE = {
    "tandem_alerts_firing",
    "tandem_deployment_status",
    "tandem_metric_available",
    "tandem_node_online",
    "tandem_telemetry_age_seconds",
}
"""Told beside the readings."""


def board() -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads((FOLDER / "tandem.json").read_text())
    return parsed


def expressions() -> Iterator[str]:
    for panel in board()["panels"]:
        yield from (target["expr"] for target in panel.get("targets", []))
    for variable in board()["templating"]["list"]:
        yield variable.get("definition", "")


def exported() -> set[str]:
    names = set(ELSEWHERE)
    for metric in METRICS.values():
        name = exported_name(metric.name)
        parts = ("_bucket", "_sum", "_count") if metric.shape == "bucket" else ("",)
        names |= {name + part for part in parts}
    return names


def test_every_metric_on_the_board_is_exported() -> None:
    asked = {name for text in expressions() for name in re.findall(r"tandem_\w+", text)}
    assert len(asked) > 30
    assert asked <= exported()


def test_the_board_has_no_number_of_another_grafana() -> None:
    parsed = board()
    assert (parsed["uid"], "id" in parsed) == ("tandem-fleet", False)
    sources = {json.dumps(panel["datasource"]) for panel in parsed["panels"] if "targets" in panel}
    assert sources == {'{"type": "prometheus", "uid": "${datasource}"}'}
    numbers = [panel["id"] for panel in parsed["panels"]]
    assert len(set(numbers)) == len(numbers)


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board()["panels"]:
        spot = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(spot["x"], spot["x"] + spot["w"])
            for y in range(spot["y"], spot["y"] + spot["h"])
        }
        assert spot["x"] + spot["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.django_db
def test_the_files_can_be_taken_from_the_panel() -> None:
    viewer = Client()
    viewer.force_login(User.objects.create_user("lin"))
    for name in ("tandem.json", "dashboards.yml", "datasource.yml", "prometheus.yml"):
        answer = viewer.get(f"/monitor/export/{name}", headers={"host": "panel.example:8443"})
        assert answer.status_code == 200
        assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    assert 'targets: ["panel.example:8443"]' in answer.content.decode()
    assert viewer.get("/monitor/export/other.json").status_code == 404
    assert Client().get("/monitor/export/tandem.json").status_code == 302
