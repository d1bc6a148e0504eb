"""A node's page names its accelerators; what a driver does not say is no zero."""

import msgspec
import pytest
from django.test import Client

from dashboard.models import Node
from engine.protocol.agent import Accelerator
from tests.dashboard.pages_cast import HARDWARE, body, make_node, operator, viewer

__all__ = ["operator", "viewer"]
pytestmark = pytest.mark.django_db


def box(*accelerators: Accelerator) -> Node:
    node = make_node("box-1")
    hardware = msgspec.structs.replace(HARDWARE, accelerators=list(accelerators))
    node.inventory = msgspec.to_builtins(hardware)
    node.save()
    return node


def h100(index: int) -> Accelerator:
    return Accelerator(
        index=index,
        vendor="nvidia",
        name="NVIDIA H100",
        uuid=f"GPU-{index}",
        memory_bytes=80 * 2**30,
        driver="580.142",
    )


def test_devices_that_are_alike_are_told_together(viewer: Client) -> None:
    box(*map(h100, range(8)))
    assert "8 × NVIDIA H100" in body(viewer, "/nodes/")
    page = body(viewer, "/nodes/box-1/")
    assert page.count("NVIDIA H100") == 1
    assert "80.0 GiB" in page
    assert "580.142" in page
    assert all(f"GPU-{index}" in page for index in range(8))


def test_unified_memory_is_the_hosts_and_said_to_be(viewer: Client) -> None:
    box(Accelerator(index=0, vendor="nvidia", name="NVIDIA GB10", unified=True, driver="580"))
    page = body(viewer, "/nodes/box-1/")
    assert "64.0 GiB" in page
    assert "unified, shared with the host" in page


def test_what_a_driver_does_not_say_is_absent(viewer: Client) -> None:
    box(Accelerator(index=0, vendor="amd", name="AMD"))
    page = body(viewer, "/nodes/box-1/")
    assert "Its driver does not say" in page
    assert "0.0 GiB" not in page


def test_a_box_without_any_says_so(viewer: Client) -> None:
    box()
    assert "None was found. Engines compute on the processor." in body(viewer, "/nodes/box-1/")
