"""Nodes: their token is seen once, their hardware when it is known."""

import re

import pytest
from django.test import Client

from dashboard.choices import NodeStatus
from dashboard.models import Deployment, Node
from dashboard.models.fleet import hash_token
from tests.dashboard.pages_cast import body, make_launch, make_model, make_node, operator, viewer

__all__ = ["operator", "viewer"]
pytestmark = pytest.mark.django_db


def token_in(text: str) -> str:
    found = re.search(r"tdn_[\w-]+", text)
    assert found
    return found.group()


def test_adding_a_node_shows_its_token_once_with_the_command(operator: Client) -> None:
    answer = operator.post("/nodes/", {"name": "box-1", "address": "10.0.0.1"})
    text = answer.content.decode()
    token = token_in(text)
    assert f"export TANDEM_NODE_TOKEN={token}" in text
    assert ".venv/bin/python -m engine.agent --server http://testserver" in text
    assert "no-store" in answer["Cache-Control"]
    assert Node.objects.get().token_hash == hash_token(token)
    for path in ("/nodes/", "/nodes/box-1/"):
        assert "tdn_" not in body(operator, path)


def test_a_new_token_replaces_the_old_one(operator: Client) -> None:
    make_node("box-1")
    token = token_in(operator.post("/nodes/box-1/token/").content.decode())
    assert Node.objects.get().token_hash == hash_token(token)


def test_a_name_that_is_taken_is_refused_at_its_field(operator: Client) -> None:
    make_node("box-1")
    answer = operator.post("/nodes/", {"name": "box-1", "address": "10.0.0.2"})
    assert answer.status_code == 422
    assert "name" in answer.context["form"].errors
    assert "data-open" in answer.content.decode()


@pytest.mark.parametrize(
    "address", ["10.0.0.5", "fd00::5", "box-1", "box-1.example.org", "127.0.0.1"]
)
def test_an_address_or_a_host_name_is_taken(operator: Client, address: str) -> None:
    assert operator.post("/nodes/", {"name": "box-1", "address": address}).status_code == 200
    assert Node.objects.get().address == address


@pytest.mark.parametrize(
    "address",
    ["10.0.0", "10.0.0.256", "http://box-1", "box-1:21000", "a box", "<b>box</b>", "-box", "a..b"],
)
def test_what_is_no_address_is_refused_at_its_field(operator: Client, address: str) -> None:
    answer = operator.post("/nodes/", {"name": "box-1", "address": address})
    assert answer.status_code == 422
    assert "neither an IP address nor a host name" in answer.content.decode()
    assert not Node.objects.exists()


def test_hardware_is_listed(operator: Client) -> None:
    make_node("box-1")
    text = body(operator, "/nodes/box-1/")
    for fact in ("Quiet Processor 9", "64.0 GiB", "avx2", "10.0.0.1"):
        assert fact in text


def test_a_node_that_never_connected_shows_dashes_with_the_reason(operator: Client) -> None:
    make_node("attic", NodeStatus.PENDING)
    text = body(operator, "/nodes/")
    assert text.count('title="Known once its agent has connected"') == 3
    assert "Its agent has never connected" in text


def test_the_ranks_of_a_node_are_named(operator: Client) -> None:
    row = Deployment.objects.create(name="smol", model=make_model(), settings={"tp": 2})
    make_launch(row, make_node("box-1"), make_node("box-2"))
    assert "Rank 1 of smol" in body(operator, "/nodes/")
    assert "Loading" in body(operator, "/nodes/box-2/")


def test_without_nodes_one_is_told_what_to_do(operator: Client) -> None:
    assert "start its agent with the token" in body(operator, "/nodes/")


def test_a_node_is_closed_and_opened_for_new_ranks(operator: Client) -> None:
    make_node("box-1")
    assert "Close for new ranks" in body(operator, "/nodes/box-1/")
    operator.post("/nodes/box-1/close/")
    text = body(operator, "/nodes/box-1/")
    assert "Takes no new ranks" in text
    assert "Closed for new ranks by ada." in text
    operator.post("/nodes/box-1/open/")
    assert Node.objects.get().schedulable


def test_a_node_that_is_away_can_be_removed_with_its_history(operator: Client) -> None:
    row = Deployment.objects.create(name="smol", model=make_model(), settings={"tp": 2})
    launch = make_launch(row, make_node("box-1"), make_node("box-2", NodeStatus.OFFLINE))
    answer = operator.post("/nodes/box-2/remove/", follow=True)
    assert "smol still has a rank on box-2; stop it first." in answer.content.decode()
    type(launch).objects.update(status="stopped")
    answer = operator.post("/nodes/box-2/remove/", follow=True)
    assert answer.redirect_chain == [("/nodes/", 302)]
    assert "box-2 is no longer part of the fleet." in answer.content.decode()
    assert not row.replicas.exists()
    assert [node.name for node in Node.objects.all()] == ["box-1"]
    assert "Node box-2 was removed by ada." in body(operator, "/")


def test_a_node_that_is_online_cannot_be_removed(operator: Client) -> None:
    make_node("box-1")
    assert "Remove box-1 from the fleet?" in body(operator, "/nodes/box-1/")
    answer = operator.post("/nodes/box-1/remove/", follow=True)
    assert "box-1 is online; stop its agent first." in answer.content.decode()
    assert Node.objects.exists()


def test_who_may_only_look_changes_no_node(viewer: Client) -> None:
    make_node("box-1", NodeStatus.OFFLINE)
    for action in ("open", "close", "remove", "token"):
        assert viewer.post(f"/nodes/box-1/{action}/").status_code == 403
    assert "Close for new ranks" not in body(viewer, "/nodes/box-1/")
