"""Every wait ends, and says what was waited for."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard import heads, lifecycle
from dashboard.models import Deployment, Job, JobStep, Model
from tests.dashboard.fleet_cast import Worker, fleet, make_deployment, worker

__all__ = ["worker"]

pytestmark = pytest.mark.django_db(transaction=True)


async def pass_deadline(step: str) -> None:
    past = timezone.now() - timedelta(seconds=1)
    await JobStep.objects.filter(name=step, status="running").aupdate(deadline_at=past)


async def test_a_rank_that_does_not_load_is_named_with_what_was_seen_last(worker: Worker) -> None:
    async with fleet(worker) as cast:
        await cast.ask()
        await cast.launched()
        await cast.a.report(cast.a.engine("loading", "ready", "loading", progress=0.4))
        await cast.until(lambda: "40%" in str(JobStep.objects.get(name="load").detail))
        await pass_deadline("load")
        deployment = await cast.until_status("failed")
        assert str(deployment.reason) == (
            "Rank 1 on node-b did not finish loading within 5 min; last seen: Loading 40%. "
            "Look at its log."
        )
        await cast.ended()
        load = await JobStep.objects.aget(name="load")
        assert (load.status, str(load.detail)) == ("failed", str(deployment.reason))
        assert (await JobStep.objects.aget(name="verify")).status == "skipped"


async def test_a_model_that_loads_but_does_not_answer_fails(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "ask_for_a_token", lambda replica, model: "HTTP 500: broken")
    async with fleet(worker) as cast:
        await cast.deploy()
        await cast.until(lambda: "HTTP 500" in str(JobStep.objects.get(name="verify").detail))
        await pass_deadline("verify")
        deployment = await cast.until_status("failed")
        assert "did not answer a test request within 60 s" in str(deployment.reason)


def test_without_any_node_the_deploy_fails_and_says_so(worker: Worker) -> None:
    deployment = make_deployment()
    lifecycle.request_deploy(deployment, "someone")
    worker.work()
    deployment = Deployment.objects.get()
    assert deployment.status == "failed"
    assert str(deployment.reason) == "There is no node yet; add one and start its agent."


def test_with_every_node_away_it_waits_then_fails_and_says_so(worker: Worker) -> None:
    lifecycle.create_node("box", "10.0.0.1")
    lifecycle.request_deploy(make_deployment(), "someone")
    worker.work()
    assert Deployment.objects.get().status == "starting"
    JobStep.objects.filter(name="place").update(deadline_at=timezone.now() - timedelta(seconds=1))
    worker.work()
    deployment = Deployment.objects.get()
    assert deployment.status == "failed"
    assert "box offline" in str(deployment.reason)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"tp": 10}, "make tp × ep 9 or less"), ({"pp": 31}, "use pp=30 or less")],
)
def test_a_plan_that_cannot_split_the_model_fails_with_the_remedy(
    worker: Worker, settings: dict[str, Any], words: str
) -> None:
    lifecycle.request_deploy(make_deployment(**settings), "someone")
    worker.work()
    assert words in str(Deployment.objects.get().reason)


def test_a_model_file_that_is_gone_or_changed_is_noticed_before_anything_starts(
    worker: Worker,
) -> None:
    deployment = make_deployment()
    Model.objects.update(size_bytes=1)
    lifecycle.request_deploy(deployment, "someone")
    worker.work()
    assert "import it again" in str(Deployment.objects.get().reason)
    Model.objects.update(path="/nowhere/model.gguf")
    lifecycle.request_deploy(Deployment.objects.get(), "someone")
    worker.work()
    assert "model.gguf" in str(Deployment.objects.get().reason)
    assert [job.status for job in Job.objects.all()] == ["failed", "failed"]
