"""The mixture-of-experts demo is made once, taken in and offered no more."""

from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from dashboard import demo
from dashboard.models import Model
from tests.dashboard.pages_cast import body, operator

__all__ = ["operator"]
pytestmark = [pytest.mark.django_db, pytest.mark.model]


def test_the_demo_is_made_and_imported(
    operator: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "STATE_DIR", tmp_path)
    assert "Mixture-of-experts demo" in body(operator, "/models/")
    answer = operator.post("/models/demo/experts/")
    assert answer["Location"] == f"/models/{demo.NAME}/"
    assert "2 of 4 for each token, of size 1536" in body(operator, f"/models/{demo.NAME}/")
    assert "Mixture-of-experts demo" not in body(operator, "/models/")
    assert [it.name for it in (tmp_path / "models").iterdir()] == [f"{demo.NAME}.gguf"]
    assert operator.post("/models/demo/experts/").status_code == 302
    assert Model.objects.count() == 1


def test_without_a_folder_to_write_to_the_page_says_so(
    operator: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").write_text("in the way")
    monkeypatch.setattr(settings, "STATE_DIR", tmp_path)
    answer = operator.post("/models/demo/experts/", follow=True)
    assert "cannot be written: File exists." in answer.content.decode()


def test_a_viewer_is_not_offered_it(client: Client) -> None:
    assert client.post("/models/demo/experts/").status_code in (302, 403)
    assert not Model.objects.exists()
