"""Nothing on a page comes from elsewhere, and no page could be made to run what it should not."""

import re

import pytest
from django.test import Client

from dashboard.models import Deployment
from tests.dashboard.pages_cast import body, make_launch, make_model, make_node, operator

__all__ = ["operator"]
pytestmark = pytest.mark.django_db

PAGES = [
    "/",
    "/models/",
    "/models/smollm2-135m/",
    "/nodes/",
    "/nodes/box-1/",
    "/nodes/box-1/sources/",
    "/nodes/box-1/sources/new/redfish/",
    "/nodes/box-1/sources/new/pdu/",
    "/deployments/",
    "/deployments/new/",
    "/deployments/smol/",
    "/chat/",
    "/keys/",
]


@pytest.fixture
def everything() -> None:
    row = Deployment.objects.create(name="smol", model=make_model(), settings={"tp": 2})
    make_launch(row, make_node("box-1"), make_node("box-2"))


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("path", PAGES)
def test_pages_carry_no_inline_script_and_no_foreign_address(operator: Client, path: str) -> None:
    text = body(operator, path)
    for attributes in re.findall(r"<script\b([^>]*)>", text):
        assert "src=" in attributes or 'type="application/json"' in attributes, attributes
    assert not re.search(r"\son\w+=\"", text)
    assert not re.search(r"(?:src|href|action)=\"(?:https?:)?//", text)


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("path", PAGES)
def test_the_policy_allows_our_own_origin_alone(operator: Client, path: str) -> None:
    policy = operator.get(path)["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "connect-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("path", PAGES)
def test_pages_can_be_used_without_a_mouse_or_eyes(operator: Client, path: str) -> None:
    text = body(operator, path)
    assert text.count("<h1") == 1
    assert 'class="skip" href="#main"' in text
    assert 'id="main"' in text
    for attributes in re.findall(r"<dialog\b([^>]*)>", text):
        assert "aria-labelledby" in attributes
    used = set(re.findall(r"aria-labelledby=\"([^\"]+)\"", text))
    assert used <= set(re.findall(r"\bid=\"([^\"]+)\"", text))
    ids = re.findall(r"\bid=\"([^\"]+)\"", text)
    assert len(ids) == len(set(ids)), sorted({it for it in ids if ids.count(it) > 1})
