"""What a person sees, in headless Chromium against the real product."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.stack.conftest import PROJECT, Stack

pytestmark = [pytest.mark.stack, pytest.mark.model, pytest.mark.browser]

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 60_000.0
"""Milliseconds for whatever the page waits for; the machine may be busy."""

LAST_POINT = """() => Math.max(0, ...[...document.querySelectorAll('[data-plot]')]
    .flatMap(plot => plot.data ?? [])
    .flatMap(trace => trace.x?.length ? [Number(new Date(trace.x.at(-1)))] : []))"""
"""The time of the newest point on any chart; 0 while nothing is drawn."""
MINUTES_SHOWN = """() => Math.round(Math.max(0, ...[...document.querySelectorAll('[data-plot]')]
    .flatMap(plot => plot.layout?.xaxis?.range ? [plot.layout.xaxis.range] : [])
    .map(([from, to]) => (new Date(to) - new Date(from)) / 60000)))"""
"""How much time the widest chart spans; 0 while nothing is drawn."""


@dataclass
class Trail:
    """What the browser asked for and complained about."""

    addresses: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def follow(self, page: Page) -> None:
        page.on("request", lambda request: self.addresses.append(request.url))
        page.on("websocket", lambda socket: self.addresses.append(socket.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )

    def outside(self, home: str) -> list[str]:
        """Requests that went anywhere but to the panel."""
        loud = [url for url in self.addresses if urlsplit(url).scheme not in ("data", "blob")]
        return [url for url in loud if urlsplit(url).netloc != urlsplit(home).netloc]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        missing = f"No browser at {CHROMIUM}: what a person sees was NOT tested."
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        it = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield it
        it.close()


@pytest.fixture
def page(browser: Browser, stack: Stack) -> Iterator[Page]:
    """Signed in, on the overview; afterwards: no error, and nothing left the machine."""
    context = browser.new_context(
        base_url=stack.base_url, locale="en-US", viewport={"width": 1440, "height": 900}
    )
    it = context.new_page()
    it.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    trail = Trail()
    trail.follow(it)
    it.goto("/")
    it.get_by_label("Username").fill("admin")
    it.get_by_label("Password").fill(stack.password)
    it.get_by_role("button", name="Sign in").click()
    expect(it.get_by_role("heading", name="Overview")).to_be_visible()
    yield it
    context.close()
    assert trail.complaints == []
    assert trail.outside(stack.base_url) == []


def ask(page: Page, text: str, most: int = 2000) -> None:
    """Start a conversation; returns as soon as the answer, of at most `most` tokens, has begun."""
    page.goto("/chat/")
    page.locator("#parameters-toggle").click()
    page.locator("#max_tokens").fill(str(most))
    page.locator("#parameters-toggle").click()
    page.locator("#text").fill(text)
    page.locator("#send").click()
    expect(answer(page)).not_to_be_empty()


def answer(page: Page) -> Locator:
    return page.locator(".turn-answer .prose").last


def test_both_nodes_are_online_and_the_deployment_is_ready(page: Page) -> None:
    nodes = page.locator("#nodes")
    expect(nodes.locator('.list-title [data-status="online"]')).to_have_count(2)
    expect(nodes.get_by_text("Rank 0 of smollm2")).to_be_visible()
    expect(nodes.get_by_text("Rank 1 of smollm2")).to_be_visible()
    expect(page.locator('#deployments [data-status="ready"]')).to_have_count(1)


def test_the_plan_shows_what_each_rank_holds(page: Page) -> None:
    page.get_by_role("link", name="smollm2", exact=True).first.click()
    held = page.locator("#plan [data-rank]")
    expect(held).to_have_count(2)
    expect(held.nth(0)).to_contain_text("2 of 3")
    expect(held.nth(1)).to_contain_text("1 of 3")
    expect(page.locator('#job [data-status="done"]').first).to_be_visible()
    expect(page.locator("#log .log-line").first).to_be_visible()


def test_an_answer_is_written_as_it_comes_and_is_there_after_a_reload(page: Page) -> None:
    ask(page, "Write three sentences about the sea.", most=64)
    page.wait_for_function(
        """start => document.querySelector('.turn-answer .prose').textContent.length > start""",
        arg=len(answer(page).inner_text()),
    )
    expect(page.locator(".turn-answer").last).to_have_attribute("data-status", "done")
    expect(page.locator('[data-metric="rate"]').last).to_contain_text("tokens/s")
    written = answer(page).inner_text()
    page.reload()
    expect(answer(page)).to_have_text(written, use_inner_text=True)
    expect(page.locator("#conversations .chat-entry").first).to_contain_text("Write three")


def test_stop_keeps_what_was_written(page: Page) -> None:
    ask(page, "Tell me a very long story about a lighthouse, with many chapters.")
    page.locator("#stop").click()
    expect(page.locator(".turn-answer").last).to_have_attribute("data-status", "stopped")
    expect(answer(page)).not_to_be_empty()
    kept = answer(page).inner_text()
    page.reload()
    expect(answer(page)).to_have_text(kept, use_inner_text=True)


def test_an_answer_keeps_to_the_schema_that_was_asked_for(page: Page) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}, "old": {"type": "boolean"}},
        "required": ["city", "old"],
        "additionalProperties": False,
    }
    page.goto("/chat/")
    page.locator("#parameters-toggle").click()
    page.locator("#parameters .more > summary").click()
    page.locator("#answer_form").select_option("json_schema")
    page.locator("#answer_shape").fill(json.dumps(schema))
    page.locator("#parameters-toggle").click()
    page.locator("#text").fill("Name a city.")
    page.locator("#send").click()
    expect(page.locator(".turn-answer").last).to_have_attribute("data-status", "done")
    said = json.loads(answer(page).inner_text())
    assert set(said) == {"city", "old"}
    assert isinstance(said["old"], bool)


def test_the_experts_demo_is_made_deployed_in_small_numbers_and_answers(page: Page) -> None:
    page.goto("/models/")
    page.get_by_role("button", name="Mixture-of-experts demo").click()
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_text("2 of 4 for each token")).to_be_visible()
    page.get_by_role("link", name="Deploy this model").click()
    page.locator("#id_name").fill("experts")
    page.locator("#id_tp").fill("2")
    page.locator("#id_kv_dtype").select_option("int8")
    page.get_by_role("button", name="Create and deploy").click()
    expect(page.locator('#job [data-status="done"]').first).to_be_visible()
    expect(page.locator('#status [data-status="ready"]').first).to_be_visible(timeout=6 * PATIENCE)
    page.goto("/chat/")
    page.locator("#route").select_option("experts")
    page.locator("#parameters-toggle").click()
    page.locator("#temperature").fill("0")
    page.locator("#parameters-toggle").click()
    page.locator("#text").fill("What is the capital of France?")
    page.locator("#send").click()
    expect(answer(page)).to_contain_text("Paris")
    page.goto("/deployments/experts/")
    page.locator('#status [data-dialog="stop"]').click()
    page.locator("#stop").get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator('#status [data-status="stopped"]').first).to_be_visible()


def test_the_charts_move(page: Page) -> None:
    page.wait_for_function(f"() => ({LAST_POINT})() > 0")
    newest = page.evaluate(LAST_POINT)
    page.wait_for_function(f"newest => ({LAST_POINT})() > newest", arg=newest)


def test_another_span_of_time_is_drawn_on_every_chart(page: Page) -> None:
    page.goto("/nodes/node-a/")
    page.wait_for_function(f"() => ({MINUTES_SHOWN})() === 15")
    page.get_by_role("button", name="5 min", exact=True).click()
    page.wait_for_function(f"() => ({MINUTES_SHOWN})() === 5")


def test_everything_speaks_chinese_after_one_click(page: Page) -> None:
    page.locator('[data-menu="language"] summary').click()
    page.get_by_role("button", name="简体中文").click()
    expect(page.get_by_role("heading", name="概览")).to_be_visible()
    expect(page.locator("#nodes [data-status='online']").first).to_have_text("在线")
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    page.goto("/chat/")
    expect(page.locator("#text")).to_have_attribute("placeholder", "输入消息")


def test_a_dark_theme_is_kept(page: Page) -> None:
    page.locator("summary[aria-label='Theme']").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto("/nodes/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.skipif("TANDEM_SCREENSHOT" not in os.environ, reason="no new screenshot was asked for")
def test_screenshot_for_the_readme(page: Page) -> None:
    ask(page, "Why is it useful to run one model on two small machines?", most=96)
    expect(page.locator(".turn-answer").last).to_have_attribute("data-status", "done")
    page.set_viewport_size({"width": 1440, "height": 1180})
    page.goto("/")
    page.get_by_role("button", name="5 min", exact=True).click()
    page.wait_for_function(f"() => ({MINUTES_SHOWN})() === 5")
    target = PROJECT / "docs" / "screenshot.png"
    target.parent.mkdir(exist_ok=True)
    page.screenshot(path=target)
