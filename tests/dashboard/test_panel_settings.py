"""The panel's settings: changed on one page, in effect at once, with a way back."""

from collections.abc import Iterator

import pytest
from django.test import Client

from dashboard import panel_settings
from dashboard.choices import RevisionState
from dashboard.models import AuditEntry, Revision
from tests.dashboard.pages_cast import body, operator, viewer

__all__ = ["operator", "viewer"]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    panel_settings.forget()
    yield
    panel_settings.forget()


def entered(**values: object) -> dict[str, object]:
    """As the page's form sends it."""
    kept = {name: "" if value is None else value for name, value in panel_settings.kept().items()}
    flags = {"sign_in_local": "on"}
    return flags | kept | {"language": "en", "why": ""} | values


def test_a_change_is_in_effect_with_its_reason_and_author(operator: Client) -> None:
    answer = operator.post("/settings/", entered(keep_log_days="3", why="The disk is small."))
    assert answer.status_code == 302
    assert panel_settings.current()["keep_log_days"] == 3
    newest = Revision.objects.get(state=RevisionState.CURRENT)
    assert (newest.number, newest.by, newest.why) == (2, "ada", "The disk is small.")
    entry = AuditEntry.objects.get(action="panel.settings")
    assert (entry.before, entry.after) == ({"keep_log_days": 7}, {"keep_log_days": 3})
    assert "The disk is small." in body(operator, "/settings/")


def test_what_does_not_fit_together_is_refused_at_its_field(operator: Client) -> None:
    answer = operator.post("/settings/", entered(keep_seconds_days="30", keep_minutes_days="7"))
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == ["keep_minutes_days"]
    assert not Revision.objects.exists()


def test_one_click_goes_back(operator: Client) -> None:
    operator.post("/settings/", entered(keep_log_days="3"))
    operator.post("/settings/revisions/1/back/")
    assert panel_settings.current()["keep_log_days"] == 7
    assert Revision.objects.get(state=RevisionState.CURRENT).origin == "rollback"


def test_saving_the_same_again_is_no_revision(operator: Client) -> None:
    operator.post("/settings/", entered())
    assert not Revision.objects.exists()


def test_the_environment_wins_and_the_page_says_so(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TANDEM_KEEP_SECONDS_DAYS", "5")
    operator.post("/settings/", entered(keep_seconds_days="9"))
    assert panel_settings.current()["keep_seconds_days"] == 5
    assert "TANDEM_KEEP_SECONDS_DAYS" in body(operator, "/settings/")
    assert not Revision.objects.exists()


def test_a_viewer_sees_them_and_may_not_change_them(viewer: Client) -> None:
    assert 'name="keep_log_days"' in body(viewer, "/settings/")
    assert viewer.post("/settings/", entered(keep_log_days="3")).status_code == 403
    assert not Revision.objects.exists()
