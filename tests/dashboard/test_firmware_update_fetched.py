"""A BMC without push fetches the image from the panel, at an address that is good once."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dashboard.choices import UpdateState
from dashboard.models import AuditEntry, FirmwareFetch, NodeUpdate
from tests.dashboard.gateway_cast import panel
from tests.dashboard.update_cast import Pair, both_labs, make_pair, shortened

__all__ = ["both_labs", "shortened"]

pytestmark = pytest.mark.django_db(transaction=True)


async def test_it_is_fetched_once_over_http(
    shortened: None, both_labs: Any, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    async with panel() as client:
        settings.PUBLIC_URL = str(client._base_url).rstrip("/")
        told = await sync_to_async(fetch_and_end)(both_labs, monkeypatch)
    [image] = told["images"]
    assert image["way"] == "fetch"
    assert image["parameters"]["url"].startswith(settings.PUBLIC_URL + "/firmware/fetch/")
    update = await NodeUpdate.objects.select_related("rollout__image").aget()
    assert update.state == UpdateState.RELEASED
    assert image["sha256"] == update.rollout.image.sha256
    fetch = await FirmwareFetch.objects.aget()
    assert fetch.done_at is not None
    entry = await AuditEntry.objects.aget(action="firmware.fetch")
    assert entry.actor == "BMC of node-a"


def fetch_and_end(labs: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    pair: Pair = make_pair(labs, monkeypatch)
    pair.lab_a.turn(multipart=False)
    pair.approved(parts=pair.parts("BIOS")[:1])
    pair.until(lambda: pair.update(pair.a).state in (UpdateState.RELEASED, UpdateState.HELD))
    return pair.lab_a.told()


async def test_a_panel_that_does_not_know_its_address_says_so(
    shortened: None, both_labs: Any, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.PUBLIC_URL = ""
    told = await sync_to_async(fetch_and_end)(both_labs, monkeypatch)
    update = await NodeUpdate.objects.aget()
    assert update.state == UpdateState.HELD
    assert "set TANDEM_PUBLIC_URL" in str(update.reason)
    assert told["tasks"] == 0
