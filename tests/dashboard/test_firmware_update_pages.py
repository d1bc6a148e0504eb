"""Pages of firmware updates: who sees and may do what, and forms that are sent twice."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard import panel_settings
from dashboard.choices import UpdateState
from dashboard.configuration.panel import PANEL
from dashboard.lifecycle import updates
from dashboard.models import FirmwareImage, Node, NodeUpdate, Rollout
from dashboard.sentences import Sentence
from tests.dashboard.update_cast import Pair, add_image, both_labs, pair, shortened

__all__ = ["both_labs", "pair", "shortened"]

TICK = "I know that this cannot be undone."


def client(name: str) -> Client:
    user, _made = User.objects.get_or_create(username=name)
    found = Client()
    found.force_login(user)
    return found


def filled_in(who: Client, image: FirmwareImage, pair: Pair, **changes: Any) -> dict[str, Any]:
    page = who.get(f"/firmware/updates/new/{image.pk}/").content.decode()
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token is not None
    parts = [part.pk for part in pair.parts("BIOS")]
    return {"token": token[1], "parts": parts, "reason": "It has holes.", **changes}


def text(who: Client, path: str) -> str:
    answer = who.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_two_people_bring_an_update_on_its_way(pair: Pair) -> None:
    ada, bob, lin = client("ada"), client("bob"), client("lin")
    image = add_image("BIOS")
    form = filled_in(ada, image, pair)
    assert "node-a: BIOS, 1.0.0 → 1.1.0" in text(ada, f"/firmware/updates/new/{image.pk}/")
    where = {ada.post(f"/firmware/updates/new/{image.pk}/", form)["Location"] for _ in range(3)}
    [path] = where
    assert Rollout.objects.count() == 1
    assert "Another administrator has to approve it: you made it." in text(ada, path)
    assert "It waits for an administrator." in text(lin, path)
    page = text(bob, path)
    assert TICK in page
    assert "Take it that it cannot." in page
    answers = {"reason": "Read the notes."}
    assert bob.post(f"{path}approve/", answers).status_code == 422
    assert ada.post(f"{path}approve/", answers | {"understood": "on"}).status_code == 302
    assert lin.post(f"{path}approve/", answers | {"understood": "on"}).status_code == 403
    assert {row.state for row in NodeUpdate.objects.all()} == {UpdateState.VERIFIED}
    for _twice in range(2):
        bob.post(f"{path}approve/", answers | {"understood": "on"})
    assert {row.state for row in NodeUpdate.objects.all()} == {UpdateState.APPROVED}
    shown = text(lin, path)
    assert "approved by bob" in shown
    assert "asked for by ada" in shown


def test_nobody_makes_the_panels_own_monthly_roll_out(pair: Pair) -> None:
    ada, image = client("ada"), add_image("BIOS")
    form = filled_in(ada, image, pair, token=f"monthly-2026-12-{image.pk}", allow_downgrade="on")
    assert ada.post(f"/firmware/updates/new/{image.pk}/", form).status_code == 422
    assert not Rollout.objects.exists()


def test_a_way_back_needs_no_tick(pair: Pair) -> None:
    rollout = pair.draft(image=add_image("BIOS", reversible=True))
    updates.conclude_verification(rollout, None)
    bob = client("bob")
    path = f"/firmware/updates/{rollout.pk}/"
    assert TICK not in text(bob, path)
    bob.post(f"{path}approve/", {"reason": "Read the notes."})
    assert pair.update(pair.a).state == UpdateState.APPROVED


def test_the_order_is_chosen(pair: Pair) -> None:
    ada, image = client("ada"), add_image("BIOS")
    first, second = (part.pk for part in pair.parts("BIOS"))
    path = f"/firmware/updates/new/{image.pk}/"
    form = filled_in(ada, image, pair, parts=[first], first=second)
    refused = ada.post(path, form)
    assert refused.status_code == 422
    assert "not among those that are chosen" in refused.content.decode()
    ada.post(path, form | {"parts": [first, second]})
    rows = NodeUpdate.objects.order_by("order")
    assert [row.node.name for row in rows] == ["node-b", "node-a"]


def test_what_is_being_changed_has_no_way_to_break_it_off(pair: Pair) -> None:
    rollout = pair.approved()
    path, ada = f"/firmware/updates/{rollout.pk}/", client("ada")
    assert "Cancel this update?" in text(ada, path)
    pair.until_state(pair.a, UpdateState.DRAINING)
    for to in (UpdateState.PRECHECK, UpdateState.UPLOADING):
        updates.move(pair.update(pair.a), to, Sentence("So it goes."))
    assert "Cancel this update?" not in text(ada, path)
    ada.post(f"{path}cancel/")
    assert pair.update(pair.a).state == UpdateState.UPLOADING
    assert pair.update(pair.b).state == UpdateState.APPROVED


def test_a_held_box_is_given_back_on_its_page(pair: Pair) -> None:
    pair.lab_a.turn(fault="verify")
    rollout = pair.approved()
    pair.held(pair.a)
    ada, path = client("ada"), f"/firmware/updates/{rollout.pk}/"
    assert "It stays out of service until somebody has looked at it." in text(ada, path)
    ada.post(f"/firmware/updates/nodes/{pair.update(pair.a).pk}/release/")
    assert not Node.objects.get(pk=pair.a.pk).evacuated
    assert "Given back by ada." in text(ada, path)


def test_an_image_is_approved_beforehand_by_another_person(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = PANEL.complete({"firmware_automatic": True})
    monkeypatch.setattr("dashboard.views.firmware.images.current", lambda: settings)
    monkeypatch.setattr(panel_settings, "current", lambda: settings)
    image = add_image("BIOS", uploaded_by=User.objects.get(username="ada"))
    ada, bob = client("ada"), client("bob")
    path = f"/firmware/images/{image.pk}/"
    assert "you brought it" in text(ada, path)
    given = {"reason": "Ran a week.", "understood": "on"}
    ada.post(f"{path}monthly/", given)
    image.refresh_from_db()
    assert image.preapproved_at is None
    assert bob.post(f"{path}monthly/", {"reason": "Ran a week."}).status_code == 422
    bob.post(f"{path}monthly/", given)
    assert "bob lets it begin without being asked again." in text(ada, path)
    ada.post(f"{path}monthly/", {"withdraw": "1"})
    image.refresh_from_db()
    assert image.preapproved_at is None
