"""Signed out one sees nothing; signed in one looks; staff operate."""

import pytest
from django.test import Client

from dashboard.models import Deployment, Node
from tests.dashboard.pages_cast import body, make_model, make_node, operator, viewer

__all__ = ["operator", "viewer"]
pytestmark = pytest.mark.django_db

PAGES = ["/", "/models/", "/nodes/", "/deployments/", "/deployments/new/"]


@pytest.mark.parametrize("path", PAGES)
def test_signed_out_one_is_asked_to_sign_in(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 302
    assert answer["Location"] == f"/sign-in/?next={path}"


def test_signing_in_leads_to_the_page_one_wanted(client: Client, operator: Client) -> None:
    answer = client.post(
        "/sign-in/?next=/nodes/",
        {"username": "ada", "password": "correct horse", "next": "/nodes/"},
    )
    assert answer["Location"] == "/nodes/"


def test_a_wrong_password_is_said_and_the_name_kept(client: Client, operator: Client) -> None:
    answer = client.post("/sign-in/", {"username": "ada", "password": "wrong"})
    text = answer.content.decode()
    assert 'role="alert"' in text
    assert 'value="ada"' in text


def test_signing_out_takes_a_post(operator: Client) -> None:
    assert operator.get("/sign-out/").status_code == 405
    assert operator.post("/sign-out/")["Location"] == "/sign-in/"
    assert operator.get("/").status_code == 302


def test_who_may_only_look_finds_no_buttons(viewer: Client) -> None:
    model = make_model()
    Deployment.objects.create(name="smol", model=model)
    make_node("box-1")
    for path in ("/models/", "/nodes/", "/nodes/box-1/", "/deployments/", "/deployments/smol/"):
        text = body(viewer, path)
        assert "data-dialog" not in text, path
        assert "/deploy/" not in text, path


def test_who_may_only_look_is_told_why_nothing_happens(viewer: Client) -> None:
    Deployment.objects.create(name="smol", model=make_model())
    for path in ("/deployments/smol/deploy/", "/nodes/", "/models/", "/deployments/new/"):
        answer = viewer.post(path, {"name": "x", "address": "10.0.0.9", "path": "/x"})
        assert answer.status_code == 403, path
        assert "Ask an administrator" in answer.content.decode()
    assert not Node.objects.exists()


def test_actions_are_never_a_link(operator: Client) -> None:
    Deployment.objects.create(name="smol", model=make_model())
    assert operator.get("/deployments/smol/deploy/").status_code == 405


def test_a_forged_form_is_refused() -> None:
    strict = Client(enforce_csrf_checks=True)
    answer = strict.post("/sign-in/", {"username": "ada", "password": "x"})
    assert answer.status_code == 403
    assert "reload the page" in answer.content.decode()


def test_an_address_that_does_not_exist_says_so_in_the_panels_dress(operator: Client) -> None:
    answer = operator.get("/deployments/nobody/")
    assert answer.status_code == 404
    assert "There is nothing at this address" in answer.content.decode()
