"""An update is followed as it happens: its page is never loaded again."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.db import connections
from django.test import Client
from playwright.sync_api import Page, Request, Route, WebSocketRoute, expect, sync_playwright

from dashboard import outbox
from dashboard.choices import UpdateState
from dashboard.lifecycle import updates
from tests.dashboard.update_cast import Pair, both_labs, pair, shortened

__all__ = ["both_labs", "pair", "shortened"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

HOME = "http://panel.test"
PATIENCE = 60_000.0
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


@dataclass
class Panel:
    """Answers the browser out of the test's own database, and tells it what was announced."""

    client: Client
    sockets: list[WebSocketRoute] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def answer(self, route: Route) -> None:
        url = urlsplit(route.request.url)
        if url.path.startswith("/static/"):
            path = Path(str(finders.find(url.path.removeprefix("/static/"))))
            route.fulfill(body=path.read_bytes(), content_type=TYPES[path.suffix])
            return
        self.asked.append(f"{route.request.resource_type} {url.path}")
        found = self._ask(route.request)
        connections.close_all()  # Playwright calls this in a context of its own.
        kind = found.headers["Content-Type"]
        route.fulfill(status=found.status_code, body=found.content, content_type=kind)

    def _ask(self, request: Request) -> Any:
        path = request.url.removeprefix(HOME)
        if request.method == "GET":
            return self.client.get(path)
        kind = request.headers["content-type"]
        return self.client.post(path, request.post_data or "", kind, follow=True)

    def connect(self, socket: WebSocketRoute) -> None:
        self.sockets.append(socket)

    def announce(self, group: str, message: dict[str, Any]) -> None:
        if group == outbox.FLEET:
            for socket in self.sockets:
                socket.send(json.dumps(message["event"]))


@pytest.fixture
def panel(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Panel:
    client = Client()
    client.force_login(User.objects.get(username="bob"))
    found = Panel(client)
    monkeypatch.setattr(outbox, "_send", found.announce)
    return found


@pytest.fixture
def page(
    chromium: Path, transactional_db: None, panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Page]:
    # Playwright's loop runs in this thread, and so does all that the test does to the database.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(base_url=HOME, locale="en-US")
        page.set_default_timeout(PATIENCE)
        page.route("**/*", panel.answer)
        page.route_web_socket("**/ws/**", panel.connect)
        yield page
        browser.close()
        connections.close_all()


def test_both_boxes_are_followed_to_the_end(page: Page, panel: Panel, pair: Pair) -> None:
    rollout = pair.draft()
    updates.conclude_verification(rollout, None)
    page.goto(f"/firmware/updates/{rollout.pk}/")
    states = page.locator("#boxes .card-head [data-status]")
    expect(states).to_have_text(["Verified", "Verified"], timeout=PATIENCE)
    updates.approve(rollout, pair.bob, "Read the notes.")
    expect(states).to_have_text(["Approved", "Approved"], timeout=PATIENCE)
    pair.until_state(pair.a, UpdateState.RELEASED)
    expect(states.first).to_have_text("Released", timeout=PATIENCE)
    page.get_by_text("What happened").first.click()
    pair.lab_b.turn(fault="verify")
    pair.held(pair.b)
    expect(states).to_have_text(["Released", "Failed and held"], timeout=PATIENCE)
    words = "The BMC gave the update up (Exception): The signature of the image is not valid."
    expect(page.locator("#boxes .reason").get_by_text(words)).to_be_visible(timeout=PATIENCE)
    assert [one for one in panel.asked if one.startswith("document")] == [
        f"document /firmware/updates/{rollout.pk}/"
    ]
    unfolded = page.locator("#boxes details").first
    expect(unfolded.get_by_text("The BMC took the image.")).to_be_visible()
    page.get_by_role("button", name="Give it back").click()
    panel.announce(outbox.FLEET, {"event": {"kind": "node", "id": pair.a.pk}})
    page.get_by_role("button", name="I have looked: give it back").click()
    expect(states).to_have_text(["Released", "Released"], timeout=PATIENCE)
