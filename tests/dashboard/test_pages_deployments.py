"""Deployments: refused at the field when they cannot work, drawn honestly while they start."""

import pytest
from django.test import Client

from dashboard.choices import DeploymentStatus, EventLevel, ReplicaRole
from dashboard.models import Deployment, Event, Fallback, Job, Replica
from tests.dashboard.fleet_cast import Worker, worker
from tests.dashboard.pages_cast import body, make_launch, make_model, make_node, operator

__all__ = ["operator", "worker"]
pytestmark = pytest.mark.django_db


def form(**changes: object) -> dict[str, object]:
    values = {"name": "smol", "tp": 2, "pp": 1, "ep": 1, "dp": 1, "dtype": "fp32"}
    values |= {"rank_weights": "", "transport": "auto"}
    values |= {"kv_dtype": "int8", "int4_group": 32}
    values |= {"max_model_len": "", "max_batch_size": 8, "kv_cache_tokens": 16384}
    return {**values, "model": make_model().pk, **changes}


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"tp": 10}, "tp", "9 query heads"),
        ({"pp": 31}, "pp", "30 layers, so at most 30 stages"),
        ({"max_model_len": 9000}, "max_model_len", "reads at most 8192 tokens"),
        ({"kv_cache_tokens": 1024}, "kv_cache_tokens", "or set a shorter context length"),
        ({"name": "new"}, "name", "taken by the panel itself"),
        ({"name": "not a name"}, "name", "Only letters, digits, hyphens"),
        ({"tp": 0}, "tp", "must be at least 1"),
        ({"tp": 10**20}, "tp", "must be at most 64"),
        ({"rank_weights": "3:2:1"}, "rank_weights", "2 ranks but 3 weights"),
        ({"rank_weights": "a lot"}, "rank_weights", "must look like 3:2"),
        ({"fallback-mode": "cold", "fallback-tp": 10}, None, "9 query heads"),
        ({"fallback-mode": "cold", "fallback-kv_cache_tokens": 512}, None, "Give the cache"),
        ({"pp": 0}, "pp", "must be at least 1"),
        ({"max_batch_size": 0}, "max_batch_size", "must be at least 1"),
    ],
)
def test_what_cannot_work_is_refused_at_its_field(
    operator: Client, changes: dict[str, object], field: str | None, sentence: str
) -> None:
    answer = operator.post("/deployments/new/", form(**changes))
    assert answer.status_code == 422
    if field is None:
        *_first, field = changes
        errors, field = answer.context["fallback"].errors[field.partition("-")[2]], field
    else:
        errors = answer.context["form"].errors[field]
    assert sentence in " ".join(errors)
    assert f'aria-describedby="id_{field}' in answer.content.decode()
    assert not Deployment.objects.exists()


def test_a_fallback_is_kept_with_its_deployment(operator: Client, worker: Worker) -> None:
    values = form(**{"fallback-mode": "resident", "fallback-dtype": "int8"})
    operator.post("/deployments/new/", values)
    kept = Fallback.objects.get(deployment__name="smol")
    assert (kept.mode, kept.dtype, kept.tp, kept.returns) == ("resident", "int8", 1, "auto")
    assert kept.engine_config.plan.world_size == 1


def test_without_a_mode_there_is_no_fallback(operator: Client, worker: Worker) -> None:
    operator.post("/deployments/new/", form(**{"fallback-dtype": "int8"}))
    assert not Fallback.objects.exists()


def test_a_number_type_that_no_box_can_do_is_refused_by_name(operator: Client) -> None:
    make_node("box-1")
    answer = operator.post("/deployments/new/", form(dtype="fp8"))
    assert answer.status_code == 422
    said = " ".join(answer.context["form"].errors["dtype"])
    assert "fp8 weights need amx_fp8; this processor can run fp32, bf16, int8, int4" in said
    assert not Deployment.objects.exists()


def test_a_good_form_creates_and_deploys(operator: Client, worker: Worker) -> None:
    answer = operator.post("/deployments/new/", form(), follow=True)
    assert answer.redirect_chain == [("/deployments/smol/", 302)]
    row = Deployment.objects.get()
    assert row.status == DeploymentStatus.STARTING
    assert Job.objects.get().by == "ada"


def test_the_only_model_is_suggested(operator: Client) -> None:
    make_model()
    text = body(operator, "/deployments/new/")
    assert 'value="smollm2-135m"' in text
    assert "selected" in text


def test_without_a_model_one_is_sent_to_the_models(operator: Client) -> None:
    for path in ("/deployments/", "/deployments/new/"):
        assert "First, a model" in body(operator, path)


def test_stop_and_deploy_ask_the_lifecycle(operator: Client, worker: Worker) -> None:
    row = Deployment.objects.create(name="smol", model=make_model())
    operator.post("/deployments/smol/deploy/")
    row.refresh_from_db()
    assert row.status == DeploymentStatus.STARTING
    operator.post("/deployments/smol/stop/")
    row.refresh_from_db()
    assert row.status == DeploymentStatus.STOPPING


def test_a_click_that_came_too_late_is_explained(operator: Client, worker: Worker) -> None:
    Deployment.objects.create(name="smol", model=make_model())
    answer = operator.post("/deployments/smol/restart/", follow=True)
    assert "“Stopped” now" in answer.content.decode()


def test_a_stopped_deployment_can_be_deleted(operator: Client) -> None:
    Deployment.objects.create(name="smol", model=make_model())
    answer = operator.post("/deployments/smol/delete/")
    assert answer["Location"] == "/deployments/"
    assert not Deployment.objects.exists()


def test_the_plan_is_drawn_before_anything_runs(operator: Client) -> None:
    Deployment.objects.create(name="smol", model=make_model(), settings={"tp": 2})
    text = body(operator, "/deployments/smol/")
    assert "2 of 3 KV heads" in text
    assert "1 of 3 KV heads" in text
    assert "nothing is running" in text


def test_a_deployment_tells_the_limits_it_was_given(operator: Client) -> None:
    settings = {"max_model_len": 4096, "target_itl_ms": 80, "dtype": "int4", "int4_group": 64}
    Deployment.objects.create(name="smol", model=make_model(), settings=settings)
    text = body(operator, "/deployments/smol/").replace("\xa0", " ")
    limits = "Context length 4,096 · KV cache 16,384 tokens · batch size 32"
    assert f"{limits} · int4 group 64 · target time per token 80 ms" in text


def test_what_is_not_measured_is_a_dash_with_its_reason(operator: Client) -> None:
    row = Deployment.objects.create(name="smol", model=make_model(), settings={"tp": 2})
    make_launch(row, make_node("box-1"), make_node("box-2"))
    text = body(operator, "/deployments/smol/")
    assert text.count('title="Known once the rank has loaded"') == 8
    assert 'aria-valuenow="25"' in text
    assert "0 kB" not in text


def test_a_failure_says_why(operator: Client) -> None:
    row = Deployment.objects.create(
        name="smol", model=make_model(), status=DeploymentStatus.FAILED, reason="Out of memory."
    )
    Event.objects.create(
        deployment=row,
        level=EventLevel.ERROR,
        message="It failed: %(cause)s",
        params={"cause": "x"},
    )
    for path in ("/", "/deployments/", "/deployments/smol/"):
        assert "Out of memory." in body(operator, path)
    assert "It failed: x" in body(operator, "/deployments/smol/")


def test_the_call_shows_the_real_address(operator: Client) -> None:
    Deployment.objects.create(name="smol", model=make_model())
    text = operator.get("/deployments/smol/", HTTP_HOST="box.office:8000").content.decode()
    assert "curl http://box.office:8000/v1/chat/completions" in text


@pytest.mark.parametrize(("status", "offered"), [("stopped", 1), ("failed", 1), ("ready", 0)])
def test_what_does_not_run_can_be_deleted(operator: Client, status: str, offered: int) -> None:
    Deployment.objects.create(name="smol", model=make_model(), status=status)
    assert body(operator, "/deployments/smol/").count('data-dialog="delete"') == offered
    operator.post("/deployments/smol/delete/")
    assert Deployment.objects.exists() is not bool(offered)


def test_return_is_offered_while_the_fallback_answers_alone(operator: Client) -> None:
    row = Deployment.objects.create(
        name="smol", model=make_model(), status=DeploymentStatus.DEGRADED, wanted=True
    )
    launch = make_launch(row, make_node("box-1"))
    assert "/deployments/smol/return/" not in body(operator, "/deployments/smol/")
    Replica.objects.filter(pk=launch.pk).update(role=ReplicaRole.FALLBACK)
    text = body(operator, "/deployments/smol/")
    assert 'action="/deployments/smol/return/"' in text
    assert 'data-role="fallback"' in text
