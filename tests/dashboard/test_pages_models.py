"""The catalogue: what is in it, and why something is not let in."""

from pathlib import Path

import pytest
from django.test import Client

from dashboard.catalogue import bundled_model_path
from dashboard.models import Model
from tests.dashboard.pages_cast import body, make_model, operator

__all__ = ["operator"]
pytestmark = pytest.mark.django_db


def test_a_file_that_is_no_model_is_refused_with_the_reason(
    operator: Client, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"not a model at all" * 100)
    answer = operator.post("/models/", {"path": str(bad)})
    assert answer.status_code == 422
    assert answer.context["form"].errors["path"]
    assert "bad.gguf" in answer.content.decode()
    assert not Model.objects.exists()


def test_a_file_that_is_not_there_is_refused(operator: Client) -> None:
    answer = operator.post("/models/", {"path": "/nowhere/model.gguf"})
    assert answer.status_code == 422
    assert "/nowhere/model.gguf" in str(answer.context["form"].errors["path"])


@pytest.mark.model
def test_a_good_file_is_taken_in(operator: Client) -> None:
    answer = operator.post("/models/", {"path": str(bundled_model_path()), "name": "bundled"})
    assert answer["Location"] == "/models/bundled/"
    text = body(operator, "/models/bundled/")
    assert "135M" in text
    assert "8,192" in text


def test_the_catalogue_shows_shape_and_size(operator: Client) -> None:
    make_model()
    text = body(operator, "/models/").replace("\xa0", " ")
    for fact in ("135M", "98 MB", "8,192", "30 layers, 9 heads, 3 KV heads", "not deployed"):
        assert fact in text


def test_the_catalogue_counts_kv_heads_in_words(operator: Client) -> None:
    model = make_model()
    model.config = {**model.config, "num_kv_heads": 1}
    model.save()
    assert "9 heads, 1 KV head ·" in body(operator, "/models/").replace("\xa0", " ")


def test_a_licence_the_file_does_not_name_is_a_dash_with_the_reason(operator: Client) -> None:
    make_model()
    assert "The file does not say" in body(operator, "/models/smollm2-135m/")


def test_an_empty_catalogue_says_what_to_do(operator: Client) -> None:
    assert "The catalogue is empty" in body(operator, "/models/")
