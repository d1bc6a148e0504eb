"""Prometheus reads the newest values, and why others are missing."""

from datetime import timedelta

import msgspec
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from msgspec.structs import replace

from dashboard.models import ApiKey, Node
from monitoring import scopes
from monitoring.export.names import ALIASES, HELP, LABELS, RENAMED, exported_name
from monitoring.metrics import GPU_CLOCK, GPU_UTILIZATION, METRICS
from monitoring.samples import measured
from monitoring.scopes import Subject
from monitoring.storage.store import store
from tests.dashboard.pages_cast import HARDWARE
from tests.monitoring.cast import NO_GPU, frame_of, make_node, node_samples
from tests.monitoring.exporting import (
    box_samples,
    exported,
    fill,
    fill_absent,
    fill_busy,
    only,
)

pytestmark = pytest.mark.django_db


def test_a_value_carries_its_node_its_source_and_its_kind() -> None:
    fill(node_samples())
    sample = only(exported()["tandem_cpu_utilization_ratio"])
    assert sample.value == 0.25
    assert sample.labels == {
        "node": "box-1",
        "scope": "host",
        "source": "host: /proc/stat",
        "kind": "measured",
    }


def test_a_readings_own_label_is_called_what_it_is() -> None:
    fill(box_samples())
    families = exported()
    assert only(families["tandem_fan_speed_rpm"]).labels["fan"] == 'fan "1"\\2'
    assert only(families["tandem_noise_dba"]).labels["position"] == "1 m"
    assert only(families["tandem_power_watts"]).labels["scope"] == "wall"
    assert only(families["tandem_clock_skew_seconds"]).value == -0.002


def test_a_speed_is_told_in_bytes_as_every_size_is() -> None:
    fill(box_samples())
    assert only(exported()["tandem_link_speed_bytes_per_second"]).value == 25e9


def test_a_device_is_told_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node()
    subjects = [Subject(f"gpu:{k}", "", node=node.pk, node_name="box-1") for k in range(2)]
    told_of = (lambda *_asked: subjects, lambda _user: scopes.NOTHING)
    monkeypatch.setattr(scopes, "_resolvers", [told_of])
    samples = [
        measured(metric, value, source="nvml", scope="accelerator", subject=f"gpu:{k}", label=label)
        for k in range(2)
        for metric, value, label in ((GPU_UTILIZATION, k / 2, ""), (GPU_CLOCK, 1e9, "sm"))
    ]
    store([frame_of(node.pk, 1, timezone.now().timestamp(), samples)])
    families = exported()
    told = families["tandem_gpu_utilization_ratio"].samples
    assert {sample.labels["device"]: sample.value for sample in told} == {"0": 0.0, "1": 0.5}
    assert {s.labels["clock"] for s in families["tandem_gpu_clock_hertz"].samples} == {"sm"}


def test_ranks_are_told_apart_by_deployment_launch_and_rank() -> None:
    fill_busy()
    samples = exported()["tandem_rank_weight_bytes"].samples
    labels = ("deployment", "launch", "rank")
    assert {tuple(s.labels[name] for name in labels) for s in samples} == {
        ("smol", "abc", "0"),
        ("smol", "abc", "1"),
    }


def test_a_histogram_is_one_with_bars_sum_and_count() -> None:
    fill_busy()
    family = exported()["tandem_time_to_first_token_seconds"]
    assert family.type == "histogram"
    told = {(s.name.rpartition("_")[2], s.labels.get("le", "")): s.value for s in family.samples}
    assert told == {
        ("bucket", "0.001"): 0,
        ("bucket", "0.25"): 7,
        ("bucket", "1.0"): 9,
        ("bucket", "+Inf"): 10,
        ("sum", ""): 3.5,
        ("count", ""): 10,
    }
    assert only(exported()["tandem_time_to_first_token_recent_seconds"]).value == 0.12


def test_counters_are_counters() -> None:
    fill_busy()
    families = exported()
    assert families["tandem_generation_tokens"].type == "counter"
    finished = families["tandem_requests_finished"].samples
    assert {sample.labels["reason"]: sample.value for sample in finished} == {
        "stop": 8,
        "length": 2,
        "abort": 1,
        "error": 0,
    }


def test_an_absent_value_is_no_sample_and_says_why() -> None:
    fill_absent()
    families = exported()
    told = set(families) - {"tandem_telemetry_age_seconds", "tandem_metric_available"}
    assert told == set()
    missing = {s.labels["metric"]: s for s in families["tandem_metric_available"].samples}
    assert set(METRICS) <= set(missing)
    assert {sample.value for sample in missing.values()} == {0}
    assert missing["gpu_utilization_ratio"].labels["reason"] == NO_GPU
    assert missing["requests_running"].labels["reason"] == "The head does not answer."


def test_vllms_names_are_there_when_they_are_asked_for() -> None:
    fill_busy()
    assert not any(name.startswith("vllm:") for name in exported())
    families = exported(aliases=True)
    running = only(families["vllm:num_requests_running"])
    assert (running.value, running.labels["model_name"]) == (3, "smol")
    assert only(families["vllm:kv_cache_usage_perc"]).value == 0.25
    assert only(families["vllm:generation_tokens"]).value == 200
    assert families["vllm:time_to_first_token_seconds"].type == "histogram"
    success = families["vllm:request_success"].samples
    assert {s.labels["finished_reason"]: s.value for s in success} == {"stop": 8, "length": 2}
    every = {name.removesuffix("_total") for names in ALIASES.values() for name in names}
    assert every <= set(families)


def test_readings_of_long_ago_are_not_exported() -> None:
    node = make_node()
    past = (timezone.now() - timedelta(minutes=2)).timestamp()
    store([frame_of(node.pk, 1, past, node_samples())])
    assert "tandem_cpu_utilization_ratio" not in exported()


def test_only_the_newest_reading_counts() -> None:
    node = make_node()
    now = timezone.now().timestamp()
    for age, cpu in ((3, 0.9), (1, 0.1)):
        store([frame_of(node.pk, 10 - age, now - age, node_samples(cpu))])
    assert only(exported()["tandem_cpu_utilization_ratio"]).value == 0.1


def test_every_name_in_the_tables_is_a_metric() -> None:
    assert set(HELP) | set(LABELS) | set(RENAMED) | set(ALIASES) <= set(METRICS)
    assert len({exported_name(metric) for metric in HELP}) == len(HELP)
    of_the_place = {"node", "device", "deployment", "launch", "rank", "scope", "source", "kind"}
    assert not of_the_place & set(LABELS.values())


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
    assert staff.get("/metrics?aliases=vllm").status_code == 200
    assert staff.get("/metrics?aliases=other").status_code == 400


def test_the_page_is_closed_to_everybody_else() -> None:
    member = Client()
    member.force_login(User.objects.create_user("ada"))
    assert Client().get("/metrics").status_code == 401
    assert member.get("/metrics").status_code == 401
    wrong = {"Authorization": "Bearer sk-tdm-wrong"}
    assert Client().get("/metrics", headers=wrong).status_code == 401


def test_an_empty_fleet_has_an_empty_page() -> None:
    assert not Node.objects.exists()
    assert exported() == {}


def test_what_is_made_up_says_so() -> None:
    fill(node_samples())
    Node.objects.update(inventory=msgspec.to_builtins(replace(HARDWARE, simulated=True)))
    families = exported()
    assert only(families["tandem_cpu_utilization_ratio"]).labels["simulated"] == "true"
    assert {s.labels["simulated"] for s in families["tandem_metric_available"].samples} == {"true"}
