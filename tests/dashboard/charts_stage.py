"""A page with telemetry on a stage: the real page and its scripts, in a browser, fed by the test.

Nothing is listened to: the browser's requests are answered here, with pages that Django rendered
before and with static files from disk; the WebSocket's other end is the test.
"""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles.finders import find
from django.db import connections, transaction
from django.test import Client
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Route,
    WebSocketRoute,
    expect,
    sync_playwright,
)

from tests.dashboard.pages_cast import body, make_node

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
LARGE = "/monitor/large/"
"""Monitor of a fleet of forty."""
REMEMBER = (
    "() => { window.before = document.querySelector('[data-telemetry]').panel.store.topics; }"
)
SETTLED = """again => {
    const panel = document.querySelector('[data-telemetry]').panel;
    return panel?.seeded && !(again && panel.store.topics === window.before)
        && !panel.fresh && !panel.drawing && !panel.pending;
}"""
DRAWN = """selector => {
    const root = document.querySelector(selector);
    const panel = document.querySelector('[data-telemetry]').panel;
    const idle = !panel.fresh && !panel.drawing;
    return idle && (root.querySelector('[data-plot]').data?.length > 0
        || !root.querySelector('[data-empty]').hidden);
}"""
PATIENCE = 30_000.0
JOIN_SECONDS = 10.0
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

Json = dict[str, Any]


def series(
    metric: str,
    values: list[float | None],
    *,
    scope: str = "host",
    label: str = "",
    unit: str = "ratio",
    kind: str = "measured",
    reason: str = "",
    low: list[float | None] | None = None,
    high: list[float | None] | None = None,
) -> Json:
    key = f"{metric}@{scope}{{{label}}}" if label else f"{metric}@{scope}"
    told = {"key": key, "metric": metric, "scope": scope, "label": label, "unit": unit}
    return {**told, "kind": kind, "source": "a test", "reason": reason} | {
        "v": values,
        "lo": low,
        "hi": high,
    }


def subject(
    topic: str,
    label: str,
    role: str,
    times: list[float],
    found: list[Json],
    rank: int | None = None,
) -> Json:
    """`times` in seconds after the beginning of what is asked for."""
    told = {"topic": topic, "label": label, "role": role, "rank": rank, "node": None}
    return {**told, "t": times, "series": found}


@dataclass
class Stage:
    """What the browser gets to hear; `asked` is what it wanted to know."""

    pages: Mapping[str, str]
    subjects: list[Json] = field(default_factory=list)
    derived: list[Json] = field(default_factory=list)
    markers: list[Json] = field(default_factory=list)
    step: float = 1.0
    asked: list[dict[str, str]] = field(default_factory=list)
    said: list[Json] = field(default_factory=list)
    sockets: list[WebSocketRoute] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def attach(self, page: Page) -> None:
        page.route("**/*", self._answer)
        page.route_web_socket("**/ws/*", self._open)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def clear(self) -> None:
        """Everything but the connections."""
        self.subjects, self.derived, self.markers, self.step = [], [], [], 1.0
        for heard in (self.asked, self.said, self.complaints):
            heard.clear()

    def tell(self, message: Json) -> None:
        """To every telemetry socket."""
        for socket in self.sockets:
            socket.send(json.dumps(message))

    def frame(self, number: int, values: list[float | None], at: float | None = None) -> None:
        now = time.time()
        self.tell({"frames": [[number, at or now, values]], "now": now})

    def _open(self, socket: WebSocketRoute) -> None:
        socket.on_message(lambda message: self.said.append(json.loads(message)))
        if "/ws/telemetry" in socket.url:
            self.sockets.append(socket)

    def _answer(self, route: Route) -> None:
        address = urlsplit(route.request.url)
        if address.path.startswith("/static/"):
            route.continue_()
        elif address.path == "/telemetry/series":
            route.fulfill(json=self._series({k: v[0] for k, v in parse_qs(address.query).items()}))
        elif address.path == "/telemetry/markers":
            route.fulfill(json={"markers": self.markers})
        elif address.path in self.pages:
            kind = "text/javascript" if address.path.endswith(".js") else "text/html"
            route.fulfill(body=self.pages[address.path], content_type=f"{kind}; charset=utf-8")
        else:
            route.fulfill(status=204, body="")

    def _series(self, query: dict[str, str]) -> Json:
        self.asked.append(query)
        now = time.time()
        until = float(query.get("to", now))
        since = float(query.get("from", until - 60 * float(query.get("minutes", 15))))
        found = self.derived if "quantile" in query.get("metrics", "") else self.subjects
        step = 60.0 if found is self.derived else self.step
        told = {"now": now, "level": "second", "step": step, "from": since, "to": until}
        return {**told, "subjects": found}


@pytest.fixture(scope="module")
def pages(django_db_setup: None, django_db_blocker: Any) -> dict[str, str]:
    """Pages as Django makes them, of two boxes and of forty, with the words their scripts need."""
    with django_db_blocker.unblock(), transaction.atomic():
        client = Client()
        client.force_login(User.objects.create_user("lin"))
        make_node("box-1")
        make_node("box-2")
        found = {}
        for path in ("/monitor/", "/nodes/box-1/", "/i18n.js"):
            found[path] = body(client, path)
        for number in range(3, 41):
            make_node(f"box-{number}")
        found[LARGE] = body(client, "/monitor/")
        transaction.set_rollback(True)
    return found


@pytest.fixture(scope="module")
def browser(pages: dict[str, str]) -> Iterator[Browser]:
    """Opened after the pages are made: Playwright's loop runs in this thread, beside which Django
    would not speak to its database."""
    if not CHROMIUM.exists():
        missing = f"No browser at {CHROMIUM}: what a person sees was NOT tested."
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        it = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield it
        it.close()
        connections.close_all()  # Those that the tests opened beside Playwright's loop.


class _Static(BaseHTTPRequestHandler):
    """Files from where Django finds them, kept by the browser from one test to the next."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = find(urlsplit(self.path).path.removeprefix("/static/"))
        body = Path(path).read_bytes() if path else b""
        self.send_response(200 if path else 404)
        self.send_header("Content-Type", TYPES.get(Path(path or "").suffix, "text/plain"))
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One for all tests of a file: the chart library is read once."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Static)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    it = browser.new_context(
        base_url=f"http://127.0.0.1:{server.server_port}",
        locale="en-US",
        viewport={"width": 1440, "height": 1000},
    )
    yield it
    it.close()
    server.shutdown()
    server.server_close()
    thread.join(JOIN_SECONDS)


@pytest.fixture(scope="module")
def desk(context: BrowserContext, pages: dict[str, str]) -> Iterator[tuple[Page, Stage]]:
    """One page for all tests of a file: to read the chart library anew takes a second each time."""
    page, stage = context.new_page(), Stage(pages)
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    stage.attach(page)
    yield page, stage
    page.close()


@pytest.fixture
def stage(desk: tuple[Page, Stage]) -> Iterator[Stage]:
    """With nothing on it yet."""
    it = desk[1]
    it.clear()
    yield it
    assert it.complaints == []


@pytest.fixture
def page(desk: tuple[Page, Stage], stage: Stage) -> Page:
    """Where the test before has left it: the test says what there is to see, then opens it."""
    return desk[0]


def show(page: Page, chart: str, path: str = "/nodes/box-1/") -> None:
    """The page with what is on the stage now, and the chart in sight and drawn."""
    if urlsplit(page.url).path != path:
        page.goto(path)
        page.wait_for_function(SETTLED, arg=False)
    else:
        page.evaluate(REMEMBER)
        page.locator("[data-span='900']").click()
        page.wait_for_function(SETTLED, arg=True)
    page.locator(chart).first.scroll_into_view_if_needed()
    page.wait_for_function(DRAWN, arg=chart)
