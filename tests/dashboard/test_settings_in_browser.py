"""Settings of a box and of the panel: looked at, refused at their field, saved, gone back to."""

import pytest
from channels.db import database_sync_to_async
from playwright.async_api import expect

from dashboard import panel_settings
from dashboard.choices import RevisionState
from dashboard.configuration.node import NODE
from dashboard.configuration.panel import PANEL, SHORTER
from dashboard.models import Node
from tests.dashboard.browser_cast import Panel, Visit, Words, panel, words
from tests.dashboard.pages_cast import make_node

__all__ = ["panel", "words"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

REASON = "Reason for the change"


async def one_is_in_use(visit: Visit, number: int, of: int) -> None:
    """The history tells this revision as the one in use, of so many."""
    rows = visit.page.locator("#history li")
    await expect(rows).to_have_count(of)
    used = rows.filter(has_text=visit.words(RevisionState.CURRENT.label))
    await expect(used).to_contain_text(f"r{number}")


async def test_a_box(panel: Panel, words: Words) -> None:
    await database_sync_to_async(make_node)("box-1")
    floor, folder, cap = (
        NODE[name] for name in ("memory_floor_mb", "cache_folder", "power_cap_watts")
    )
    visit = await panel.visit("ada")
    page = visit.page
    await page.goto("/nodes/box-1/settings/")
    await visit.field(folder).fill("var/cache")
    await visit.button("Save").click()
    await expect(visit.complaint(folder)).to_have_text(
        words(
            "This must look like %(example)s, not %(value)s.",
            example=folder.example,
            value="'var/cache'",
        )
    )
    await visit.field(folder).fill("/var/cache/tandem")
    await visit.field(cap).fill("250")
    await visit.field(floor).fill("2048")
    await page.get_by_label(words(REASON)).fill("It is loud.")
    await visit.button("Preview").click()
    effect = page.locator("#effect")
    await expect(effect.get_by_text(words("Within seconds"))).to_be_visible()
    await expect(effect.locator("dl").first.locator("dd")).to_contain_text(words.value(cap, 250.0))
    later = effect.locator("dl").last.locator("dd")
    await expect(later.first.locator("del")).to_have_text(words.value(floor, 1024))
    await expect(later.first.locator("ins")).to_have_text(words.value(floor, 2048))
    await expect(visit.text("Nothing has been saved yet.")).to_be_visible()
    assert not (await Node.objects.aget()).settings
    await visit.button("Save").click()
    await expect(visit.text("Saved as revision %(number)s.", number=2)).to_be_visible()
    await expect(page.locator("#history")).to_contain_text("It is loud.")
    await one_is_in_use(visit, 2, of=2)
    await visit.button("Back to this").click()
    await one_is_in_use(visit, 3, of=3)
    await expect(visit.field(floor)).to_have_value("1024")


async def test_the_panel(panel: Panel, words: Words) -> None:
    finer, coarser = PANEL["keep_seconds_days"], PANEL["keep_minutes_days"]
    visit = await panel.visit("ada")
    await visit.page.goto("/settings/")
    await visit.field(finer).fill("30")
    await visit.field(coarser).fill("7")
    await visit.button("Save").click()
    await expect(visit.complaint(coarser)).to_have_text(words(SHORTER, days=30))
    await visit.field(coarser).fill("90")
    await visit.button("Save").click()
    await expect(visit.text("Saved, and in effect within a few seconds.")).to_be_visible()
    await one_is_in_use(visit, 2, of=2)
    changed = visit.page.locator("#history ins")
    await expect(changed).to_have_text([words.value(finer, 30), words.value(coarser, 90)])
    await visit.button("Back to this").click()
    await one_is_in_use(visit, 3, of=3)
    await expect(visit.field(finer)).to_have_value("2")
    found = await database_sync_to_async(panel_settings.current)()
    assert (found["keep_seconds_days"], found["keep_minutes_days"]) == (2, 60)
