"""Prometheus reads the newest values, and why others are missing."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from dashboard.models import ApiKey
from monitoring.exporter import render
from monitoring.frames import check_frame
from monitoring.store import store
from tests.monitoring.cast import NO_GPU, engine_samples, launch, make_node, node_samples, now

pytestmark = pytest.mark.django_db


def exported() -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(render().decode())}


def fill() -> None:
    node = make_node()
    launch("abc", [node, node])
    samples = [*node_samples(), *engine_samples("abc", rate=None)]
    store([check_frame(node.pk, 1, now(), samples, timezone.now())])


def test_a_value_carries_its_node_its_source_and_its_kind() -> None:
    fill()
    (sample,) = exported()["tandem_cpu_utilization_ratio"].samples
    assert sample.value == 0.25
    assert sample.labels == {
        "node": "box-1",
        "deployment": "",
        "rank": "",
        "scope": "host",
        "source": "host: /proc/stat",
        "kind": "measured",
    }


def test_ranks_are_told_apart_by_deployment_and_rank() -> None:
    fill()
    samples = exported()["tandem_step_seconds"].samples
    assert {(s.labels["deployment"], s.labels["rank"]): s.value for s in samples} == {
        ("smol", "0"): 0.02,
        ("smol", "1"): 0.03,
    }


def test_an_absent_value_is_no_sample_and_says_why() -> None:
    fill()
    families = exported()
    assert "tandem_gpu_utilization_ratio" not in families
    assert "tandem_generation_tokens_per_second" not in families
    missing = {
        sample.labels["metric"]: sample.labels["reason"]
        for sample in families["tandem_metric_available"].samples
        if sample.value == 0
    }
    assert missing["gpu_utilization_ratio"] == NO_GPU
    assert "generation_tokens_per_second" in missing


def test_readings_of_long_ago_are_not_exported() -> None:
    node = make_node()
    store([check_frame(node.pk, 1, now() - 120, node_samples(), timezone.now())])
    assert "tandem_cpu_utilization_ratio" not in exported()


def test_only_the_newest_reading_counts() -> None:
    node = make_node()
    for age, cpu in ((3, 0.9), (1, 0.1)):
        store([check_frame(node.pk, 1, now() - age, node_samples(cpu), timezone.now())])
    (sample,) = exported()["tandem_cpu_utilization_ratio"].samples
    assert sample.value == 0.1


def test_the_page_opens_with_an_api_key_or_for_staff() -> None:
    user = User.objects.create_user("prometheus")
    key = ApiKey(user=user, name="scrape")
    secret = key.issue()
    key.save()
    bearer = {"Authorization": f"Bearer {secret}"}
    staff = Client()
    staff.force_login(User.objects.create_user("root", is_staff=True))
    assert Client().get("/metrics", headers=bearer).status_code == 200
    assert staff.get("/metrics").status_code == 200


def test_the_page_is_closed_to_everybody_else() -> None:
    member = Client()
    member.force_login(User.objects.create_user("ada"))
    assert Client().get("/metrics").status_code == 401
    assert member.get("/metrics").status_code == 401
    wrong = {"Authorization": "Bearer sk-tdm-wrong"}
    assert Client().get("/metrics", headers=wrong).status_code == 401
