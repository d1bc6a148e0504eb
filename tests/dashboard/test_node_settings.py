"""A node's settings: previewed, saved as revisions, told to its agent."""

import logging

import msgspec
import pytest
from django.test import Client

from dashboard import lifecycle
from dashboard.audit import Actor
from dashboard.configuration.declared import SettingsRefused
from dashboard.lifecycle.settings import change_node
from dashboard.models import AuditEntry, Node, Revision
from dashboard.secrets import keep
from engine.protocol.agent import Interface
from tests.dashboard.pages_cast import (
    HARDWARE,
    body,
    make_launch,
    make_node,
    make_smol,
    operator,
    viewer,
)

__all__ = ["operator", "viewer"]
pytestmark = pytest.mark.django_db
ADA = Actor("ada")


def form(node: Node, **values: object) -> dict[str, object]:
    return {"memory_floor_mb": 1024, "why": ""} | values


def test_a_change_reaches_the_agent_and_the_history(operator: Client) -> None:
    node = make_node("box-1")
    url = "/nodes/box-1/settings/"
    operator.post(url, form(node, power_cap_watts="250", cache_folder="/var/cache/tandem"))
    desired = lifecycle.desired_for(node.pk)
    assert desired.generation == 1
    assert desired.limits.power_watts == 250
    assert desired.environment == {"XDG_CACHE_HOME": "/var/cache/tandem"}
    assert Revision.objects.get(node=node, state="current").number == 2
    assert AuditEntry.objects.get(action="node.settings").after == {
        "power_cap_watts": 250.0,
        "cache_folder": "/var/cache/tandem",
    }
    assert "/var/cache/tandem" in body(operator, url)


def test_a_preview_says_what_is_live_and_changes_nothing(operator: Client) -> None:
    node = make_node("box-1")
    make_launch(make_smol(), node)
    answer = operator.post(
        "/nodes/box-1/settings/",
        form(node, power_cap_watts="250", memory_floor_mb="2048", preview=""),
    )
    effect = answer.context["effect"]
    assert [one.label for one in effect.live] == ["power cap"]
    assert [one.label for one in effect.later] == ["memory floor"]
    assert [one.name for one in effect.engines] == ["smol"]
    assert not Revision.objects.exists()
    assert Node.objects.get().desired_generation == 0


def test_addresses_are_chosen_from_those_the_node_has(operator: Client) -> None:
    node = make_node("box-1")
    interfaces = [
        Interface(name="eth0", address="10.0.0.1"),
        Interface(name="usb4", address="fd::1"),
    ]
    hardware = msgspec.structs.replace(HARDWARE, interfaces=interfaces)
    Node.objects.update(inventory=msgspec.to_builtins(hardware))
    assert '<option value="fd::1">' in body(operator, "/nodes/box-1/settings/")
    change_node(node, {"cable_address": "fd::1"}, ADA)
    assert Node.objects.get().link_address == "fd::1"
    change_node(node, {"cable_address": "none"}, ADA)
    assert Node.objects.get().link_address == ""
    lifecycle.connect(node.pk, "here", msgspec.structs.replace(hardware, link_address="fd::2"))
    assert Node.objects.get().link_address == ""


def test_a_secret_goes_by_its_name_and_reaches_the_agent_alone(
    operator: Client, caplog: pytest.LogCaptureFixture
) -> None:
    node = make_node("box-1")
    keep("hub", "hub-token", "hf_abcdefghijklmnop", ADA)
    with caplog.at_level(logging.DEBUG):
        operator.post("/nodes/box-1/settings/", form(node, hub_token="hub"))
        assert lifecycle.desired_for(node.pk).environment == {"HF_TOKEN": "hf_abcdefghijklmnop"}
    assert Node.objects.get().settings["hub_token"] == "hub"
    assert "hf_abcdefghijklmnop" not in caplog.text + body(operator, "/nodes/box-1/settings/")


def test_a_secret_that_is_not_stored_is_refused() -> None:
    node = make_node("box-1")
    with pytest.raises(SettingsRefused) as refused:
        change_node(node, {"hub_token": "nobody"}, ADA)
    assert list(refused.value.errors) == ["hub_token"]


def test_models_are_read_from_the_nodes_own_folder() -> None:
    node = make_node("box-1")
    make_launch(make_smol(), node)
    change_node(node, {"model_folder": "/srv/models"}, ADA)
    specs = lifecycle.desired_for(node.pk).processes
    assert {spec.model_path for spec in specs} == {"/srv/models/smollm2-135m.gguf"}


def test_a_viewer_may_not_change_them(viewer: Client) -> None:
    node = make_node("box-1")
    assert body(viewer, "/nodes/box-1/settings/")
    assert viewer.post("/nodes/box-1/settings/", form(node)).status_code == 403
