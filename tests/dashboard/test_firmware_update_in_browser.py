"""An update is asked for, approved by somebody else and followed as it happens, by both: their
pages are never loaded again."""

from urllib.parse import urlsplit

import pytest
from channels.db import database_sync_to_async
from playwright.async_api import Locator, expect

from dashboard import outbox
from dashboard.choices import UpdateState
from tests.dashboard.browser_cast import Panel, Visit, panel, words
from tests.dashboard.update_cast import Pair, add_image, both_labs, pair, shortened

__all__ = ["both_labs", "pair", "panel", "shortened", "words"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

_send = outbox._send


@pytest.fixture
def announcing(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Who looks is told of what happens."""
    monkeypatch.setattr(outbox, "_send", _send)
    return pair


async def asked_for(visit: Visit, image: int) -> None:
    page = visit.page
    await page.goto(f"/firmware/updates/new/{image}/")
    for name in "ab":
        await page.get_by_label(f"node-{name}: BIOS, 1.0.0 → 1.1.0").check()
    await page.get_by_label(visit.words("Reason"), exact=True).fill("It has holes.")
    await visit.button("Verify and ask for approval").click()
    await expect(
        visit.text("Another administrator has to approve it: you made it.")
    ).to_be_visible()
    await expect(visit.button("Approve")).to_have_count(0)


async def approved(visit: Visit) -> None:
    await visit.page.get_by_label(visit.words("Why it may go ahead")).fill("Read the notes.")
    await visit.page.get_by_label(visit.words("I know that this cannot be undone.")).check()
    await visit.button("Approve").click()


def states(visit: Visit) -> Locator:
    """Of both boxes."""
    return visit.page.locator("#boxes .card-head [data-status]")


async def both_show(visits: list[Visit], a: UpdateState, b: UpdateState) -> None:
    for visit in visits:
        said = [visit.words(state.label) for state in (a, b)]
        await expect(states(visit)).to_have_text(said)


async def test_both_boxes_are_followed_to_the_end(panel: Panel, announcing: Pair) -> None:
    pair = announcing
    image = await database_sync_to_async(add_image)("BIOS")
    ada, bob = await panel.visit("ada"), await panel.visit("bob")
    both = [ada, bob]
    await asked_for(ada, image.pk)
    await both_show([ada], UpdateState.VERIFIED, UpdateState.VERIFIED)
    await bob.page.goto(ada.page.url)
    await approved(bob)
    await both_show(both, UpdateState.APPROVED, UpdateState.APPROVED)
    loaded = [len(visit.documents) for visit in both]
    said = ada.words("approved by %(name)s", name="bob")
    await expect(ada.page.locator("#status")).to_contain_text(said)

    await database_sync_to_async(pair.until_state)(pair.a, UpdateState.RELEASED)
    await both_show(both, UpdateState.RELEASED, UpdateState.APPROVED)
    unfolded = ada.page.locator("#boxes details").first
    await unfolded.get_by_text(ada.words("What happened")).click()
    pair.lab_b.turn(fault="verify")
    await database_sync_to_async(pair.held)(pair.b)
    await both_show(both, UpdateState.RELEASED, UpdateState.HELD)
    reason = (await database_sync_to_async(pair.update)(pair.b)).reason
    assert "The signature of the image is not valid." in ada.words(reason)
    await expect(ada.page.locator("#boxes .reason")).to_have_text(ada.words(reason))
    await expect(unfolded.get_by_text(ada.words("The BMC took the image."))).to_be_visible()

    await ada.button("Give it back").click()
    await database_sync_to_async(outbox.announce)("node", pair.a.pk)
    await ada.button("I have looked: give it back").click()
    await both_show(both, UpdateState.RELEASED, UpdateState.RELEASED)
    assert bob.documents[loaded[1] :] == []
    held = await database_sync_to_async(pair.update)(pair.b)
    given_back = f"/firmware/updates/nodes/{held.pk}/release/"
    assert ada.documents[loaded[0] :] == [given_back, urlsplit(ada.page.url).path]
