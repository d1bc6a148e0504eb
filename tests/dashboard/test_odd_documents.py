"""A document with values that nothing can be made of is refused with its line."""

import pytest

from dashboard import declaring
from dashboard.audit import Actor
from dashboard.declaring import DocumentRefused
from dashboard.models import Deployment, Fallback
from tests.dashboard.pages_cast import make_model, make_node

pytestmark = pytest.mark.django_db

NODE = "tandem: 1\nnodes:\n  box-1: {memory_floor_mb: %s}\n"
ODD = {
    "a day that there is not": "2024-13-45",
    "an hour that there is not": "2024-01-01 99:99:99",
    "5000 digits": "9" * 5000,
    "9000 digits of base 16": "0x" + "f" * 9000,
    "a flag by its tag": "!!bool perhaps",
    "a time by its tag": "!!timestamp soon",
    "a number by its tag": "!!float many",
    "nothing by its tag": "!!int ''",
    "a character beyond all": '"\\UFFFFFFFF"',
    "a null character": '"\\0"',
    "half a surrogate pair": '"\\uD800"',
    "bytes": "!!binary aGVsbG8=",
    "a set": "!!set {a}",
    "a tag of Python's": "!!python/object:os.system {}",
    "no number": ".nan",
}


@pytest.mark.parametrize("value", ODD.values(), ids=ODD.keys())
def test_a_value_that_cannot_be_read_is_refused(value: str) -> None:
    make_node("box-1")
    with pytest.raises(DocumentRefused) as refused:
        declaring.apply(declaring.load(NODE % value), Actor("x"))
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("half", ['"a\\0b"', '"a\\uD800b"'])
@pytest.mark.parametrize(
    "words",
    [
        "deployments:\n  new-one: {model: %s}\n",
        "templates:\n  quick: {note: %s, settings: {token_budget: 64}}\n",
        "panel: {public_url: %s}\n",
        "deployments:\n  %s: {}\n",
    ],
)
def test_text_that_the_database_does_not_take_is_refused(words: str, half: str) -> None:
    with pytest.raises(DocumentRefused, match="Line"):
        declaring.apply(declaring.load("tandem: 1\n" + words % half), Actor("x"))


def test_a_flag_is_no_version_of_the_form() -> None:
    with pytest.raises(DocumentRefused, match="tandem: 1"):
        declaring.load("tandem: true\n")


def test_a_fallback_whose_numbers_are_texts_is_the_same_fallback() -> None:
    kept = {"max_model_len": 1000, "kv_cache_tokens": 2048}
    smol = Deployment.objects.create(name="smol", model=make_model(), settings=kept)
    Fallback.objects.create(deployment=smol, kv_cache_tokens=2048)
    words = 'tandem: 1\ndeployments:\n  smol: {fallback: {kv_cache_tokens: "2048", tp: "1"}}\n'
    assert declaring.changes(declaring.load(words)) == []
