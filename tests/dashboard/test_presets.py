"""A preset is a set of settings that works for the model it is chosen for."""

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as some

from dashboard.configuration.checks import check_engine
from dashboard.configuration.engine import ENGINE
from dashboard.configuration.presets import PRESETS, preset
from dashboard.models import Deployment
from tests.dashboard.pages_cast import make_model, operator
from tests.shapes import SMOLLM2

__all__ = ["operator"]

NAMES = [one.name for one in PRESETS]


@given(
    some.sampled_from(NAMES),
    some.one_of(some.none(), some.integers(64, SMOLLM2.context_length)),
    some.integers(SMOLLM2.context_length + 16, 100_000),
)
def test_it_always_validates(name: str, longest: int | None, cache: int) -> None:
    values = {**ENGINE.defaults, "max_model_len": longest, "kv_cache_tokens": cache}
    _checked, problems = check_engine(preset(name, values, SMOLLM2), SMOLLM2, None)
    assert not problems


def test_an_unknown_one_changes_nothing() -> None:
    assert preset("fast", ENGINE.defaults, SMOLLM2) == ENGINE.defaults


@pytest.mark.django_db
def test_the_form_begins_with_it(operator: Client) -> None:
    Deployment.objects.create(name="smol", model=make_model())
    text = operator.get("/deployments/smol/settings/?preset=quiet").content.decode()
    assert 'name="max_batch_size" value="2"' in text
    assert Deployment.objects.get().max_batch_size == 32
