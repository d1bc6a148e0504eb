"""The way to the other boxes: the interface that leads there, its counters, and the round trip."""

import socket
from pathlib import Path

import pytest

from monitoring.probes import links
from monitoring.probes.links import LinkProbe
from monitoring.probes.roots import Roots
from monitoring.samples import Sample

NO_ANSWER = "The other node did not answer in time; it is down, or a firewall drops what asks."


class Cable:
    """A box with interfaces made of files, and peers that answer or do not."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = 0.0
        self.routes: dict[str, str | None] = {}
        self.trips: dict[str, float | None] = {}
        self.asked: list[str] = []
        self.probe = LinkProbe(
            Roots(sysfs=root), self.routes.get, self.round_trip, lambda: self.now
        )

    def round_trip(self, peer: str) -> float | None:
        self.asked.append(peer)
        return self.trips.get(peer)

    def interface(self, name: str, speed: str, **counters: int) -> Path:
        folder = self.root / "class/net" / name
        (folder / "statistics").mkdir(parents=True)
        (folder / "speed").write_text(f"{speed}\n")
        for counter, value in counters.items():
            (folder / "statistics" / counter).write_text(f"{value}\n")
        return folder

    def read(self) -> dict[str, Sample]:
        return {f"{s.metric} {s.label}".strip(): s for s in self.probe.read()}


@pytest.fixture
def cable(tmp_path: Path) -> Cable:
    return Cable(tmp_path)


def test_a_box_alone_has_no_link(cable: Cable) -> None:
    samples = cable.read()
    assert {sample.reason for sample in samples.values()} == {"This fleet has no other node."}
    assert len(samples) == 5


def test_two_nodes_on_one_machine_have_no_cable(cable: Cable) -> None:
    cable.routes["127.0.0.2"] = "lo"
    cable.probe.watch(["127.0.0.2"])
    reasons = {sample.reason for sample in cable.read().values()}
    assert reasons == {"The other nodes are on this same machine: no cable leads to them."}
    assert cable.asked == []


def test_without_a_route_it_is_said(cable: Cable) -> None:
    cable.probe.watch(["10.0.0.2"])
    assert cable.read()["link_speed_bits_per_second"].reason.startswith("No interface")


def test_the_interface_that_leads_there_is_told_with_the_round_trip(cable: Cable) -> None:
    cable.interface("enp1s0", "200000", rx_bytes=5, tx_bytes=7, rx_errors=1, tx_errors=2)
    cable.interface("eth9", "1000", rx_bytes=1, tx_bytes=1, rx_errors=0, tx_errors=0)
    cable.routes["10.0.0.2"] = "enp1s0"
    cable.trips["10.0.0.2"] = 0.00012
    cable.probe.watch(["10.0.0.2"])
    values = {key: sample.value for key, sample in cable.read().items()}
    assert values == {
        "link_received_bytes_total enp1s0": 5.0,
        "link_sent_bytes_total enp1s0": 7.0,
        "link_errors_total enp1s0": 3.0,
        "link_speed_bits_per_second enp1s0": 2e11,
        "link_round_trip_seconds 10.0.0.2": 0.00012,
    }


def test_what_the_driver_does_not_tell_is_absent(cable: Cable) -> None:
    cable.interface("eth0", "-1", rx_bytes=5)
    cable.routes["10.0.0.2"] = "eth0"
    cable.probe.watch(["10.0.0.2"])
    samples = cable.read()
    speed = samples["link_speed_bits_per_second eth0"]
    assert (speed.value, speed.reason) == (None, "The interface's driver does not tell its speed.")
    assert samples["link_sent_bytes_total eth0"].value is None
    assert samples["link_round_trip_seconds 10.0.0.2"].reason == NO_ANSWER


def test_what_rdma_carries_past_the_kernel_is_counted_apart(cable: Cable) -> None:
    folder = cable.interface("enp1s0", "200000", rx_bytes=5, tx_bytes=7)
    port = folder / "device/infiniband/mlx5_0/ports/1/counters"
    port.mkdir(parents=True)
    (port / "port_rcv_data").write_text("250\n")
    (port / "port_xmit_data").write_text("1000\n")
    cable.routes["10.0.0.2"] = "enp1s0"
    cable.probe.watch(["10.0.0.2"])
    samples = cable.read()
    assert samples["link_received_bytes_total enp1s0 RDMA"].value == 1000.0
    assert samples["link_sent_bytes_total enp1s0 RDMA"].value == 4000.0


def test_one_node_is_asked_every_two_seconds_and_several_in_turn(cable: Cable) -> None:
    cable.routes |= {"10.0.0.2": "eth0", "10.0.0.3": "eth0"}
    cable.probe.watch(["10.0.0.2"])
    for _ in range(4):
        cable.read()
        cable.now += 1.0
    assert cable.asked == ["10.0.0.2"] * 2
    cable.asked.clear()
    cable.probe.watch(["10.0.0.2", "10.0.0.3"])
    for _ in range(5):
        cable.read()
        cable.now += 1.0
    assert cable.asked.count("10.0.0.3") >= 2
    assert cable.asked.count("10.0.0.2") >= 2


def test_a_refusal_is_an_answer_and_silence_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(links, "DISCARD", server.getsockname()[1])
        accepted = links._round_trip("127.0.0.1")
    refused = links._round_trip("127.0.0.1")
    assert accepted is not None
    assert refused is not None
    assert links._round_trip("256.0.0.1") is None


def test_an_address_of_this_machine_leads_over_loopback() -> None:
    assert links._interface_to("127.0.0.1") == "lo"
    assert links._interface_to("no such name") is None
