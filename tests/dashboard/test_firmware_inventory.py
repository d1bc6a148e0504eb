"""What boxes run, side by side, with what differs, is staged or not known."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.firmware.bmc import bmc_of
from dashboard.firmware.errors import BmcError
from dashboard.firmware.fitting import differences, fits, versions_of
from dashboard.firmware.inventory import read_bmc
from dashboard.firmware.matrix import columns, rows
from dashboard.firmware.upkeep import look_after
from dashboard.lifecycle.firmware import take_parts
from dashboard.models import AuditEntry, FirmwarePart, Node, TestedSet
from engine.errors import Said
from engine.protocol.firmware import Part
from monitoring.models import NodeSource
from monitoring.probes.redfish.firmware import part_of
from monitoring.sources import RedfishSource
from tests.dashboard.firmware_cast import operator, part, viewer
from tests.dashboard.pages_cast import body, make_node
from tests.peers.bmc import PASSWORD, USER, V1, Bmc, collection, link, make_certificate, root, serve

__all__ = ["operator", "viewer"]
pytestmark = pytest.mark.django_db
SERVICE = f"{V1}/UpdateService"
HELD = f"{SERVICE}/FirmwareInventory"


def firmware_tree() -> dict[str, Any]:
    return {
        f"{V1}/": {**root(), "UpdateService": link(SERVICE)},
        SERVICE: {"FirmwareInventory": link(HELD)},
        HELD: collection(f"{HELD}/BMC", f"{HELD}/GPU_0", f"{HELD}/gone"),
        f"{HELD}/BMC": {
            "Id": "BMC",
            "Name": "BMC",
            "Version": "24.10.1",
            "Updateable": True,
            "SoftwareId": "0x10de",
            "LowestSupportedVersion": "24.0",
            "Oem": {"Lab": {"StagedVersion": "24.11.0"}},
        },
        f"{HELD}/GPU_0": {"Id": "GPU_0", "Name": "GPU", "Version": 7, "Oem": []},
        f"{HELD}/gone": {"Id": "gone", "Status": {"State": "Absent"}},
    }


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def bmc(certificate: Any) -> Iterator[Bmc]:
    with serve(certificate, firmware_tree()) as served:
        yield served


def enter(node: Node, bmc: Bmc, ca: str, password: str = PASSWORD) -> None:
    source = RedfishSource(name="bmc", url=bmc.url, username=USER, password=password, ca=ca)
    row = NodeSource(node=node)
    row.take(source)
    row.save()


def test_a_bmc_is_asked_for_what_it_has(bmc: Bmc, certificate: Any) -> None:
    node = make_node("box-1")
    enter(node, bmc, certificate.pem)
    found = {each.key: each for each in read_bmc(node)}
    assert set(found) == {"redfish:BMC", "redfish:GPU_0"}
    bmc_part, gpu = found["redfish:BMC"], found["redfish:GPU_0"]
    assert (bmc_part.component, bmc_part.active, bmc_part.staged) == ("bmc", "24.10.1", "24.11.0")
    assert bmc_part.updatable
    assert bmc_part.model == "0x10de"
    assert bmc_part.details["path"] == f"{HELD}/BMC"
    assert (gpu.component, gpu.active) == ("gpu", "")
    bmc.tree[f"{HELD}/BMC"]["Version"] = "24.11.0"
    bmc.tree[HELD] = collection(f"{HELD}/BMC")
    (bmc_part,) = read_bmc(node)
    assert (bmc_part.active, bmc_part.staged) == ("24.11.0", "")


@pytest.mark.parametrize("wrong", ["certificate", "password", "service", "away"])
def test_a_bmc_that_cannot_be_read_keeps_what_it_said(
    bmc: Bmc, certificate: Any, wrong: str, tmp_path: Path
) -> None:
    node = make_node("box-1")
    enter(node, bmc, certificate.pem)
    read_bmc(node)
    ca, password = certificate.pem, PASSWORD
    if wrong == "certificate":
        ca = make_certificate(tmp_path, "other").pem
    elif wrong == "password":
        password = "wrong"
    elif wrong == "service":
        del bmc.tree[SERVICE]
    else:
        bmc.mishaps[f"{V1}/"] = "error"
    node.sources.all().delete()
    enter(node, bmc, ca, password)
    with pytest.raises(BmcError):
        read_bmc(node)
    kept = node.firmware.get(key="redfish:BMC")
    assert kept.active == "24.10.1"
    assert str(kept.reason).endswith(".")


def test_one_silent_bmc_costs_the_others_nothing(bmc: Bmc, certificate: Any) -> None:
    silent, other = make_node("box-1"), make_node("box-2")
    enter(silent, bmc, certificate.pem, "wrong")
    enter(other, bmc, certificate.pem)
    look_after()
    (row,) = silent.firmware.all()
    assert (row.active, row.name) == ("", "BMC")
    assert "refused" in str(row.reason)
    assert other.firmware.filter(active="24.10.1").exists()


def test_a_password_sealed_with_another_key_is_asked_for_again() -> None:
    node = make_node("box-1")
    NodeSource.objects.create(node=node, kind="redfish", name="bmc", sealed="rubbish")
    with pytest.raises(BmcError, match="enter it again"):
        bmc_of(node)
    with pytest.raises(BmcError, match="enter it again"):
        read_bmc(node)


def test_without_a_bmc_nothing_is_claimed() -> None:
    node = make_node("box-1")
    part(node, "BMC")
    assert bmc_of(node) is None
    assert read_bmc(node) == []
    assert not node.firmware.exists()


def test_strange_documents_are_not_trusted() -> None:
    strange = {"Version": ["1"], "Oem": {"a": "b", "c": {"StagedVersion": 4}}, "Status": "Enabled"}
    found = part_of(strange, f"{HELD}/x")
    assert (found.id, found.version, found.staged, found.updatable) == ("x", "", "", False)


def test_agents_and_bmcs_do_not_overwrite_each_other() -> None:
    node = make_node("box-1")
    part(node, "BMC")
    told = Part(key="read:kernel", component="kernel", channel="read", name="Linux", active="6.8")
    silent = Part(
        key="fwupd:", component="other", channel="fwupd", name="fwupd", reason=Said("No D-Bus.")
    )
    take_parts(node.pk, [told, silent])
    assert set(node.firmware.values_list("key", flat=True)) == {
        "redfish:BMC",
        "read:kernel",
        "fwupd:",
    }
    take_parts(node.pk, [])
    assert [each.key for each in node.firmware.all()] == ["redfish:BMC"]


def test_what_differs_between_boxes_is_marked(viewer: Client) -> None:
    one, two = make_node("box-1"), make_node("box-2")
    for node, version in ((one, "1.0"), (two, "1.1")):
        part(node, "BMC", version)
        part(node, "UEFI", "5", component="uefi")
    part(two, "Old disk", "", component="drive", reason="The drive does not say.")
    table = rows(columns(list(Node.objects.prefetch_related("firmware")), []))
    assert [(row.name, row.differs) for row in table] == [
        ("BMC", True),
        ("UEFI", False),
        ("Old disk", False),
    ]
    text = body(viewer, "/firmware/")
    assert text.count("data-differs") == 1
    assert "The drive does not say." in text
    assert "This box has no component of this name." in text


def test_staged_and_offered_versions_are_shown(viewer: Client) -> None:
    part(make_node("box-1"), "BMC", "1.0", staged="1.1", available="1.2")
    for url in ("/firmware/", "/firmware/nodes/box-1/"):
        text = body(viewer, url)
        assert "staged 1.1" in text
        assert "1.2 available" in text
        assert "Take as an image" not in text


def test_without_fwupd_nobody_says_that_nothing_is_offered(viewer: Client) -> None:
    node = make_node("box-1")
    part(node, "fwupd", "", component="other", channel="fwupd", reason="No D-Bus here.")
    assert viewer.get("/firmware/").context["no_offers"] == "No D-Bus here."
    part(node, "UEFI", "5", component="uefi", channel="fwupd")
    assert viewer.get("/firmware/").context["no_offers"] == ""


def test_boxes_beyond_four_are_chosen(viewer: Client) -> None:
    for number in range(6):
        part(make_node(f"box-{number}"), "BMC", f"1.{number}")
    assert 'href="/firmware/nodes/box-5/"' not in body(viewer, "/firmware/")
    text = body(viewer, "/firmware/?box=box-5&box=box-0")
    assert 'href="/firmware/nodes/box-5/"' in text
    assert 'href="/firmware/nodes/box-1/"' not in text


def test_a_set_is_made_of_a_box_and_compared_with_the_others(
    operator: Client, viewer: Client
) -> None:
    one, two = make_node("box-1"), make_node("box-2")
    part(one, "BMC", "1.0")
    part(two, "BMC", "1.1")
    part(one, "Nothing", "", component="other")
    data = {"name": "Autumn", "node": "box-1", "notes": "quiet"}
    assert viewer.post("/firmware/sets/", data).status_code == 403
    answer = operator.post("/firmware/sets/", data)
    held = TestedSet.objects.get()
    assert held.versions == [{"component": "bmc", "fits": "BMC", "version": "1.0"}]
    text = body(viewer, answer["Location"])
    assert "1.1" in text
    assert "matches no tested set" in body(viewer, "/firmware/")
    assert operator.post("/firmware/sets/", data).status_code == 422
    operator.post(f"/firmware/sets/{held.pk}/remove/")
    assert not TestedSet.objects.exists()
    assert AuditEntry.objects.filter(action="firmware.set.remove").exists()


def test_the_bmc_is_asked_at_a_click(operator: Client, bmc: Bmc, certificate: Any) -> None:
    node = make_node("box-1")
    enter(node, bmc, certificate.pem)
    assert "Ask the BMC now" in body(operator, "/firmware/nodes/box-1/")
    answer = operator.post("/firmware/nodes/box-1/read/", follow=True)
    assert "lists 2 components" in answer.content.decode()
    other = Client()
    other.force_login(User.objects.create_user("bob"))
    assert other.post("/firmware/nodes/box-1/read/").status_code == 403


@pytest.mark.parametrize(
    ("patterns", "fitting"),
    [
        (["BMC"], True),
        (["hgx_fw_bmc_*"], False),
        (["GB*"], True),
        (["gb10"], True),
        (["*"], True),
        ([], False),
        ([""], False),
        (["BMC 2"], False),
    ],
)
def test_an_image_fits_by_name_or_model(patterns: list[str], fitting: bool) -> None:
    held = FirmwarePart(component="bmc", name="BMC", model="GB10", active="1")
    assert fits("bmc", patterns, held) is fitting
    assert not fits("uefi", patterns, held)


def test_two_versions_of_one_model_are_both_in_the_set() -> None:
    drives = [
        FirmwarePart(component="drive", name=f"SSD ({name})", model="SSD", active=version)
        for name, version in (("nvme0", "7A"), ("nvme1", "7B"))
    ]
    held = versions_of(drives)
    assert differences(held, drives) == []
    drives[1].active = "6"
    (found,) = differences(held, drives)
    assert (found.fits, found.wanted, found.found) == ("SSD", "7A / 7B", "6")


names = st.text(st.characters(categories=["L", "N"], include_characters="-_ .[]*?"), min_size=1)
some_parts = st.lists(
    st.builds(
        FirmwarePart,
        component=st.sampled_from(["bmc", "gpu"]),
        name=names.filter(str.strip),
        model=st.just("") | names.filter(str.strip),
        active=names,
    ),
    max_size=5,
    unique_by=lambda part: (part.component, part.name.strip().lower()),
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(some_parts)
def test_a_box_keeps_to_the_set_that_was_made_of_it(parts: list[FirmwarePart]) -> None:
    assert differences(versions_of(parts), parts) == []
