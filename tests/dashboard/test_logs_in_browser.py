"""Whoever follows the log sees new lines come in on top, and is told when they cannot."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from playwright.sync_api import Page, Route, expect, sync_playwright

from dashboard.models import LogLine
from tests.dashboard.pages_cast import body, viewer

__all__ = ["viewer"]
pytestmark = [pytest.mark.django_db, pytest.mark.browser]

HOME = "http://panel.test"
PATIENCE = 60_000.0
SEARCH = "/monitor/logs/?q=line"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Panel:
    """What the panel answers, rendered before the browser is there: nothing is listened to."""

    def __init__(self, client: Client) -> None:
        self.away = False
        first = LogLine.objects.create(source="agent", text="the first line")
        self._page = body(client, SEARCH)
        self._fragments: dict[str, str] = {}
        second = self._say(client, first, "a second line", "error")
        self._say(client, second, "the third line")
        self._hidden = str(second.pk)

    def _say(self, client: Client, after: LogLine, text: str, level: str = "") -> LogLine:
        line = LogLine.objects.create(source="kernel", text=text, level=level)
        self._fragments[str(after.pk)] = body(client, f"{SEARCH}&after={after.pk}")
        return line

    def say_the_third(self) -> None:
        self._hidden = ""

    def answer(self, route: Route) -> None:
        url = urlsplit(route.request.url)
        if self.away:
            route.abort()
        elif url.path.startswith("/static/"):
            path = Path(str(finders.find(url.path.removeprefix("/static/"))))
            route.fulfill(body=path.read_bytes(), content_type=TYPES[path.suffix])
        elif url.path != "/monitor/logs/":
            route.fulfill(status=404)
        elif after := parse_qs(url.query).get("after"):
            known = after[0] != self._hidden
            fragment = self._fragments.get(after[0], "") if known else ""
            route.fulfill(body=fragment, content_type="text/html; charset=utf-8")
        else:
            route.fulfill(body=self._page, content_type="text/html; charset=utf-8")


@pytest.fixture
def panel(viewer: Client) -> Panel:
    return Panel(viewer)


@pytest.fixture
def page(chromium: Path, panel: Panel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    # Playwright's loop runs in this thread, and what ends the test touches the database in it.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(base_url=HOME, locale="en-US")
        page.set_default_timeout(PATIENCE)
        page.route("**/*", panel.answer)
        yield page
        browser.close()


def test_new_lines_come_in_on_top_and_a_lost_panel_is_said(page: Page, panel: Panel) -> None:
    page.goto(SEARCH)
    lines = page.locator(".logs-text")
    expect(lines).to_have_text(["the first line"], timeout=PATIENCE)
    page.get_by_label("Follow new lines").check()
    expect(lines).to_have_text(["a second line", "the first line"], timeout=PATIENCE)
    expect(page.locator(".logs-error mark")).to_have_text("line")
    lost = page.get_by_text("New lines cannot be fetched at the moment.")
    expect(lost).to_be_hidden()
    panel.away = True
    expect(lost).to_be_visible(timeout=PATIENCE)
    panel.away = False
    panel.say_the_third()
    expect(lines).to_have_count(3, timeout=PATIENCE)
    expect(lost).to_be_hidden(timeout=PATIENCE)
