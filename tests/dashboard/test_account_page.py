"""Everybody looks after their own account: password, sessions, where they are signed in."""

import pytest
from django.contrib import admin
from django.contrib.sessions.models import Session
from django.test import Client

from tests.dashboard.identity_cast import PASSWORD, somebody

pytestmark = pytest.mark.django_db
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def signed_in(agent: str = FIREFOX) -> Client:
    client = Client(headers={"User-Agent": agent})
    answer = client.post("/sign-in/", {"username": "grace", "password": PASSWORD})
    assert answer.status_code == 302
    return client


def test_the_password_is_changed_and_other_sessions_end() -> None:
    grace = somebody()
    here, there = signed_in(), signed_in()
    form = {
        "old_password": "wrong",
        "new_password1": "n3w-and-long!",
        "new_password2": "n3w-and-long!",
    }
    assert here.post("/account/password/", form).status_code == 422
    here.post("/account/password/", {**form, "old_password": PASSWORD})
    grace.refresh_from_db()
    assert grace.check_password("n3w-and-long!")
    assert here.get("/account/").status_code == 200
    assert there.get("/account/").status_code == 302


def test_sessions_are_listed_and_all_others_can_be_ended() -> None:
    grace = somebody()
    here, there = signed_in(), signed_in("curl/8")
    unknown = Client()
    unknown.force_login(grace)
    stranger = Client()
    stranger.force_login(somebody("ada"))
    page = here.get("/account/").content.decode()
    assert "Firefox · Linux" in page
    assert "A browser or program" in page
    assert "This one" in page
    answer = here.post("/account/sessions/", follow=True)
    assert "2 other sessions have ended" in answer.content.decode()
    assert there.get("/account/").status_code == 302
    assert unknown.get("/account/").status_code == 302
    assert here.get("/account/").status_code == 200
    assert stranger.get("/account/").status_code == 200


def test_a_sign_in_lasts_as_long_as_the_settings_say() -> None:
    somebody()
    client = signed_in()
    age = client.session.get_expiry_age()
    assert 13 * 86_400 < age <= 14 * 86_400
    assert Session.objects.count() == 1


def test_the_administrations_own_form_is_not_there(client: Client) -> None:
    answer = client.get("/admin/login/", {"next": "/admin/"})
    assert answer["Location"] == "/sign-in/?next=%2Fadmin%2F"


def test_the_administration_shows_no_sessions_and_no_second_factors() -> None:
    labels = {model._meta.app_label for model in admin.site._registry}
    assert not labels & {"account", "socialaccount", "mfa", "usersessions", "sessions"}


def test_every_page_of_an_account_is_for_people_who_are_signed_in(client: Client) -> None:
    for path in ("", "password/", "sessions/", "second-factor/", "provider/"):
        answer = client.post(f"/account/{path}") if path else client.get("/account/")
        assert answer["Location"].startswith("/sign-in/"), path
