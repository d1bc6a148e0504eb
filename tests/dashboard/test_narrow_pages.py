"""On a phone no page is wider than the screen: what does not fit is scrolled where it is."""

from datetime import date, time
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from playwright.sync_api import Page

from monitoring.models import QuietRule, TariffRate
from tests.dashboard.charts_stage import Stage, browser, context, desk, page, stage
from tests.dashboard.pages_cast import body
from tests.dashboard.test_pages_energy import metered_launch

__all__ = ["browser", "context", "desk", "page", "stage"]

pytestmark = [pytest.mark.django_db, pytest.mark.browser]

PATHS = (
    "/monitor/energy/",
    "/monitor/costs/",
    "/monitor/noise/",
    "/monitor/logs/",
    "/monitor/alerts/",
    "/nodes/box-1/",
    "/nodes/box-1/sources/",
    "/deployments/smol/",
    "/account/",
    "/account/second-factor/",
    "/settings/sign-in/",
    "/settings/secrets/",
)
WIDTH = "() => document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def pages(django_db_setup: None, django_db_blocker: Any) -> dict[str, str]:
    with django_db_blocker.unblock(), transaction.atomic():
        client = Client()
        client.force_login(User.objects.create_superuser("ada"))
        metered_launch()
        QuietRule.objects.create(name="Nights", begins=time(22), ends=time(6), power_watts=300)
        TariffRate.objects.create(
            since=date(2020, 1, 1), begins=time(0), ends=time(0), price=Decimal("0.3")
        )
        found = {path: body(client, path) for path in (*PATHS, "/i18n.js")}
        transaction.set_rollback(True)
    return found


@pytest.mark.parametrize("path", PATHS)
def test_nothing_reaches_beyond_the_screen(page: Page, stage: Stage, path: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(path, wait_until="load")
    assert page.evaluate(WIDTH) == 390
