"""A deployment's settings in the browser: entered, looked at, applied, followed, gone back to."""

import pytest
from playwright.async_api import expect

from dashboard.choices import DeploymentStatus, JobKind, JobStatus
from dashboard.configuration.engine import ENGINE
from dashboard.jobs.change import Compare, Replace
from dashboard.models import Replica
from engine.config import BLOCK_SIZE
from tests.dashboard.browser_cast import Panel, Visit, panel, words
from tests.dashboard.fleet_cast import Fleet, Worker, fleet, worker
from tests.dashboard.test_change_of_settings import Heads, at_rest, both_agents, ended, heads
from tests.dashboard.test_fallback import live, there

__all__ = ["heads", "panel", "words", "worker"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

CACHE = ENGINE["kv_cache_tokens"]
LENGTH = 1000
NO_ROOM = (
    "One conversation may grow to %(length)s tokens and would not fit. Give the cache at least "
    "%(needed)s tokens, or set a shorter context length."
)


async def entered(visit: Visit) -> None:
    """What cannot be is refused at its field; the next try is looked at."""
    page = visit.page
    await page.goto("/deployments/chat/settings/")
    await expect(visit.field(CACHE)).to_have_value("1024")
    await visit.field(CACHE).fill("512")
    await visit.button("Look at the change").click()
    refused = visit.words(NO_ROOM, length=LENGTH, needed=LENGTH + BLOCK_SIZE)
    await expect(visit.complaint(CACHE)).to_have_text(refused)
    await visit.field(CACHE).fill("2048")
    await page.get_by_label(visit.words("Reason for the change")).fill("Longer talks.")
    await visit.button("Look at the change").click()
    await page.wait_for_url("**/deployments/chat/revisions/2/")


async def looked_at(visit: Visit) -> None:
    """Side by side, and what applying it does."""
    row = visit.page.locator(".compare-differs")
    await expect(row).to_have_count(1)
    await expect(row.get_by_role("rowheader")).to_contain_text(visit.words.label(CACHE))
    before, after = (visit.words.value(CACHE, value) for value in (1024, 2048))
    await expect(row.get_by_role("cell")).to_have_text([before, after])
    preview = visit.page.locator("#preview")
    await expect(preview).to_contain_text(visit.words("Expected pause"))
    keeps = visit.words("The settings of before go on by themselves.")
    await expect(preview.get_by_text(keeps)).to_be_visible()
    await expect(visit.page.get_by_text("Longer talks.")).to_be_visible()


async def taken_over(visit: Visit, cast: Fleet, old: Replica) -> Replica:
    """The page shows the job at work, then what it does, then its end: it is loaded once."""
    page, say = visit.page, visit.words
    loaded = len(visit.documents)
    job = page.locator("#job")
    await expect(job).to_contain_text(say(JobKind.CHANGE.label))
    await cast.until(lambda: there("candidate", "starting"))
    done = job.locator("[data-status=done]").filter(has_text=say(Compare.title))
    await expect(done).to_have_count(1)
    running = job.locator("[data-status=running]").filter(has_text=say(Replace.title))
    await expect(running).to_have_count(1)
    launches = page.locator("#plan .launch")
    await expect(launches).to_have_count(2)
    new = await live("candidate")
    await both_agents(cast, old, new)
    await cast.until(lambda: there("retiring", "stopping"))
    await ended(cast, new)
    await at_rest(cast)
    await expect(job.locator(".card-head .badge")).to_have_text(say(JobStatus.DONE.label))
    await expect(job.locator(".step")).to_have_count(4)
    await expect(job.locator(".step[data-status=done]")).to_have_count(4)
    await expect(launches).to_have_count(1)
    state = page.locator("#status .badge").first
    await expect(state).to_have_text(say(DeploymentStatus.READY.label))
    assert visit.documents[loaded:] == []
    return new


async def test_a_change_is_followed_to_its_end_and_gone_back_from(
    panel: Panel, worker: Worker, heads: Heads
) -> None:
    async with fleet(worker, max_model_len=LENGTH) as cast:
        await cast.deploy()
        await at_rest(cast)
        first = await live("primary")
        visit = await panel.visit("ada")
        await entered(visit)
        await looked_at(visit)
        await visit.button("Apply").click()
        await visit.page.wait_for_url("**/deployments/chat/")
        second = await taken_over(visit, cast, first)
        assert (await cast.fresh()).settings["kv_cache_tokens"] == 2048
        await visit.page.goto("/deployments/chat/revisions/")
        await visit.button("Back to this").click()
        await visit.page.wait_for_url("**/deployments/chat/")
        await taken_over(visit, cast, second)
        assert (await cast.fresh()).settings["kv_cache_tokens"] == 1024
        await visit.page.context.close()
