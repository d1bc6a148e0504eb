"""People in front of the panel: a real server, a real browser, and one of the panel's languages.

A test that says its words through `Words` holds for every language that the panel speaks.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation
from django.utils.functional import Promise
from django.utils.text import capfirst
from playwright.async_api import Browser, Locator, Page, async_playwright, expect

from dashboard import panel_settings
from dashboard.asgi import application
from dashboard.configuration.declared import Setting
from dashboard.gateway.upstream import close_session
from dashboard.sentences import Sentence

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
PATIENCE = 60_000.0
"""Milliseconds for whatever a page waits for; the machine may be busy."""
START_SECONDS = 30.0


@dataclass(frozen=True)
class Words:
    """What the panel says, in the language of whoever looks."""

    code: str
    locale: str

    def __call__(self, message: str | Promise | Sentence, **parts: object) -> str:
        said = _in(self.code, message)
        assert self.code == "en" or said != _in("en", message), f"not translated: {said}"
        return said % parts if parts else said

    def label(self, setting: Setting) -> str:
        """As its field is called."""
        return capfirst(self(setting.label))

    def value(self, setting: Setting, value: Any) -> str:
        with translation.override(self.code):
            return setting.shown(value)


def _in(code: str, message: str | Promise | Sentence) -> str:
    with translation.override(code):
        return translation.gettext(message) if isinstance(message, str) else str(message)


@dataclass
class Visit:
    """One person's browser, signed in; `documents` are the pages it loaded."""

    page: Page
    words: Words
    documents: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def listen(self) -> None:
        def note(request: Any) -> None:
            if request.resource_type == "document":
                self.documents.append(urlsplit(request.url).path)

        self.page.on("request", note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def button(self, message: str) -> Locator:
        return self.page.get_by_role("button", name=self.words(message), exact=True)

    def text(self, message: str | Promise | Sentence, **parts: object) -> Locator:
        return self.page.get_by_text(self.words(message, **parts), exact=True)

    def field(self, setting: Setting) -> Locator:
        return self.page.locator(f"[data-setting={setting.name}]").get_by_label(
            self.words.label(setting)
        )

    def complaint(self, setting: Setting) -> Locator:
        """What stands at the field because of what was entered."""
        return self.page.locator(f"[data-setting={setting.name}]").get_by_role("alert")


@dataclass
class Panel:
    """The panel's address, and browsers to look at it with."""

    url: str
    browser: Browser
    words: Words
    visits: list[Visit] = field(default_factory=list)

    async def visit(self, name: str) -> Visit:
        """A browser of this person, who is an administrator."""
        cookie = await database_sync_to_async(_session_of)(name)
        # Nothing turns: pages that are painted without end leave no time to a busy machine.
        context = await self.browser.new_context(
            base_url=self.url, locale=self.words.locale, reduced_motion="reduce"
        )
        await context.add_cookies(
            [{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": self.url}]
        )
        context.set_default_timeout(PATIENCE)
        found = Visit(await context.new_page(), self.words)
        found.listen()
        self.visits.append(found)
        return found


def _session_of(name: str) -> str:
    user = User.objects.filter(username=name).first() or User.objects.create_superuser(name)
    client = Client()
    client.force_login(user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


@pytest.fixture(params=[("en", "en-US"), ("zh-hans", "zh-CN")], ids=["English", "Chinese"])
def words(request: pytest.FixtureRequest) -> Words:
    return Words(*request.param)


@pytest.fixture
async def panel(chromium: Path, words: Words, transactional_db: None) -> AsyncIterator[Panel]:
    """The whole application on a free port; afterwards no script has complained."""
    expect.set_options(timeout=PATIENCE)
    panel_settings.forget()
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application, lifespan="off", log_config=None, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        async with asyncio.timeout(START_SECONDS):
            while not server.started:
                await asyncio.sleep(0.01)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
            found = Panel(f"http://127.0.0.1:{listener.getsockname()[1]}", browser, words)
            yield found
            await browser.close()
        assert [one for visit in found.visits for one in visit.complaints] == []
    finally:
        server.should_exit = True
        await task
        await close_session()
        listener.close()
        panel_settings.forget()
