"""A preset is a set of settings that works for its model, on the boxes there are."""

import msgspec
import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as some

from dashboard.configuration.checks import check_engine
from dashboard.configuration.declared import Values
from dashboard.configuration.engine import ENGINE, engine_config_of
from dashboard.configuration.presets import PRESETS, preset
from dashboard.errors import PlacementError
from dashboard.models import AuditEntry, Deployment, SettingsTemplate
from dashboard.placement import NodeCapacity, place
from tests.dashboard.pages_cast import body, make_model, make_node, operator, viewer
from tests.shapes import SMOLLM2

__all__ = ["operator", "viewer"]

NAMES = [one.name for one in PRESETS]
LONG = msgspec.structs.replace(SMOLLM2, context_length=131_072)


def fits(values: Values, memory: int) -> bool:
    box = NodeCapacity(
        pk=1,
        name="box-1",
        online=True,
        schedulable=True,
        machine="box-1",
        memory_bytes=memory,
    )
    try:
        place(SMOLLM2, engine_config_of(values), [box])
    except PlacementError:
        return False
    return True


@given(
    some.sampled_from(NAMES),
    some.sampled_from([SMOLLM2, LONG]),
    some.one_of(some.none(), some.integers(64, SMOLLM2.context_length)),
    some.integers(64, 200_000),
    some.sampled_from([2**29, 2**30, 2**31, 2**32, 2**36]),
)
def test_it_always_validates_and_fits_where_anything_does(
    name: str, shape: object, longest: int | None, cache: int, memory: int
) -> None:
    assert isinstance(shape, type(SMOLLM2))
    before = {**ENGINE.defaults, "max_model_len": longest, "kv_cache_tokens": cache}
    after = preset(name, before, shape, lambda tried: fits(tried, memory))
    _checked, problems = check_engine(after, shape, None)
    assert not problems
    needed = (longest or shape.context_length) + 16
    sound = {**before, "kv_cache_tokens": max(cache, needed)}
    assert fits(after, memory) or not fits(sound, memory)


@pytest.mark.parametrize("name", NAMES)
def test_with_room_it_does_what_it_is_for(name: str) -> None:
    after = preset(name, ENGINE.defaults, SMOLLM2)
    assert ENGINE.changes(ENGINE.defaults, after)
    assert after["tp"] == ENGINE["tp"].default


def test_the_context_is_as_long_as_there_is_room_for() -> None:
    roomy = preset("long-context", ENGINE.defaults, LONG)
    assert (roomy["max_model_len"], roomy["kv_cache_tokens"]) == (None, 131_088)

    def small(tried: Values) -> bool:
        cache = tried["kv_cache_tokens"]
        return isinstance(cache, int) and cache < 40_000

    tight = preset("long-context", ENGINE.defaults, LONG, small)
    assert (tight["max_model_len"], tight["kv_cache_tokens"]) == (32_768, 32_784)


def test_an_unknown_one_changes_nothing() -> None:
    assert preset("fast", ENGINE.defaults, SMOLLM2) == ENGINE.defaults


@pytest.mark.django_db
def test_the_form_begins_with_it_and_says_what_it_changes(operator: Client) -> None:
    make_node("box-1")
    Deployment.objects.create(name="smol", model=make_model())
    text = body(operator, "/deployments/smol/settings/?preset=quiet")
    assert 'name="max_batch_size" value="2"' in text
    assert "<dt>Batch size</dt><dd><del>32</del>" in text
    assert Deployment.objects.get().max_batch_size == 32
    text = body(operator, "/deployments/new/?preset=throughput")
    assert 'name="max_batch_size" value="64"' in text


@pytest.mark.django_db
def test_settings_are_kept_for_other_deployments(operator: Client, viewer: Client) -> None:
    kept = {"max_batch_size": 8, "kv_cache_tokens": 20_000}
    row = Deployment.objects.create(name="smol", model=make_model(), settings=kept)
    entered = {"name": "contracts", "note": "Long ones"}
    assert viewer.post("/deployments/smol/template/", entered).status_code == 403
    operator.post("/deployments/smol/template/", entered)
    assert SettingsTemplate.objects.get().values == kept
    assert "Long ones" in body(viewer, "/settings/templates/")
    Deployment.objects.create(name="other", model=row.model)
    for path in ("/deployments/other/settings/", "/deployments/new/"):
        text = body(operator, f"{path}?template=contracts")
        assert 'name="max_batch_size" value="8"' in text
        assert "Long ones" in text
    operator.post("/deployments/smol/template/", {"name": "a b"})
    assert SettingsTemplate.objects.count() == 1
    operator.post(f"/settings/templates/{SettingsTemplate.objects.get().pk}/remove/")
    assert not SettingsTemplate.objects.exists()
    actions = AuditEntry.objects.values_list("action", flat=True)
    assert {"template.keep", "template.remove"} <= set(actions)
