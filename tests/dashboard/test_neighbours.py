"""Each node measures the way to those it works with, and hears when one of them comes or goes."""

import msgspec
import pytest
from django.utils import timezone

from dashboard import lifecycle
from dashboard.choices import NodeStatus
from dashboard.lifecycle.neighbours import MOST_WATCHED
from dashboard.models import Node
from engine.protocol.agent import Inventory
from tests.monitoring.cast import launch

pytestmark = pytest.mark.django_db


def inventory(name: str, *, link_address: str = "", simulated: bool = False) -> Inventory:
    return Inventory(
        hostname=name,
        address="10.0.0.1",
        link_address=link_address,
        platform="Linux",
        cpu_model="CPU",
        cpu_count=2,
        memory_bytes=1 << 30,
        python="3.11",
        engine_version="0",
        simulated=simulated,
    )


def box(number: int, *, cable: str = "", simulated: bool = False) -> Node:
    name = f"box-{number}"
    node = Node(
        name=name,
        address=f"10.0.0.{number}",
        link_address=cable,
        status=NodeStatus.ONLINE,
        connected_at=timezone.now(),
        inventory=msgspec.to_builtins(inventory(name, simulated=simulated)),
    )
    node.issue_token()
    node.save()
    return node


def watch(node: Node) -> list[str]:
    return lifecycle.desired_for(node.pk).watch


def test_two_boxes_watch_each_other_on_the_cable_where_both_have_one() -> None:
    one, two = box(1, cable="10.9.0.1"), box(2, cable="10.9.0.2")
    assert watch(one) == ["10.9.0.2"]
    three = box(3)
    assert watch(three) == ["10.0.0.1", "10.0.0.2"]
    assert watch(two) == ["10.9.0.1", "10.0.0.3"]


def test_a_node_that_works_with_others_watches_only_those() -> None:
    nodes = [box(number) for number in range(1, 8)]
    launch("l1", nodes[5:])
    assert watch(nodes[5]) == ["10.0.0.7"]
    assert len(watch(nodes[0])) == MOST_WATCHED


def test_a_box_alone_and_simulated_boxes_have_nobody_to_watch() -> None:
    one = box(1)
    assert watch(one) == []
    box(2, simulated=True)
    assert watch(one) == []


def test_nobody_watches_a_node_that_has_never_been_there() -> None:
    one, two = box(1), box(2)
    Node.objects.filter(pk=two.pk).update(connected_at=None)
    assert watch(one) == []
    before = lifecycle.desired_for(one.pk).generation
    lifecycle.connect(two.pk, "over", inventory("box-2"))
    after = lifecycle.desired_for(one.pk)
    assert after.watch == ["10.0.0.2"]
    assert after.generation > before, "so that it is told"


def test_coming_back_at_the_same_address_is_no_news() -> None:
    one, two = box(1), box(2)
    before = lifecycle.desired_for(one.pk).generation
    lifecycle.connect(two.pk, "over", inventory("box-2"))
    assert lifecycle.desired_for(one.pk).generation == before
    lifecycle.connect(two.pk, "over", inventory("box-2", link_address="10.9.0.2"))
    assert lifecycle.desired_for(one.pk).generation > before
