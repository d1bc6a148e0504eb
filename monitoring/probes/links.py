"""The way to the other boxes: which interface leads there, what it carries, how long it takes."""

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import psutil

from monitoring.metrics import (
    LINK_ERRORS,
    LINK_RECEIVED,
    LINK_ROUND_TRIP,
    LINK_SENT,
    LINK_SPEED,
    Metric,
)
from monitoring.probes.roots import Roots, number_of
from monitoring.samples import Sample, Scope, gettext_noop, measured, unavailable

ROUTE_SECONDS = 30.0
"""How long a route is believed."""
ROUND_TRIP_SECONDS = 2.0
"""Between two questions to the same node; of several nodes one is asked a second, in turn."""
MOST_SECONDS = 0.25
"""For one answer; it takes microseconds on a cable and milliseconds in a building."""
DISCARD = 9
"""A port on which next to nothing listens: the other box's kernel refuses at once, and that is an
answer as good as any."""
MOST_PEERS = 8

ALONE = gettext_noop("This fleet has no other node.")
SAME_BOX = gettext_noop("The other nodes are on this same machine: no cable leads to them.")
NO_ROUTE = gettext_noop("No interface of this machine leads to the other nodes.")
NO_COUNTER = gettext_noop("The interface's driver does not count it.")
NO_SPEED = gettext_noop("The interface's driver does not tell its speed.")
NO_ANSWER = gettext_noop(
    "The other node did not answer in time; it is down, or a firewall drops what asks."
)

METRICS = (LINK_RECEIVED, LINK_SENT, LINK_ERRORS, LINK_SPEED, LINK_ROUND_TRIP)


class LinkProbe:
    """Counters are labelled by interface, round trips by the other node's address. What RDMA
    carries past the kernel is counted apart, where there is RDMA."""

    name = "link"
    scope: Scope = "host"
    metrics: Sequence[Metric] = METRICS

    def __init__(
        self,
        roots: Roots,
        interface_to: "Callable[[str], str | None] | None" = None,
        round_trip: "Callable[[str], float | None] | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._roots = roots
        self._interface_to = interface_to or _interface_to
        self._round_trip = round_trip or _round_trip
        self._clock = clock
        self._peers: tuple[str, ...] = ()
        self._routes: dict[str, str | None] = {}
        self._routes_due = 0.0
        self._trips: dict[str, float | None] = {}
        self._turn = 0
        self._trip_due = 0.0

    def watch(self, addresses: Sequence[str]) -> None:
        """The other nodes; from any thread."""
        peers = tuple(addresses[:MOST_PEERS])
        if peers != self._peers:
            self._peers, self._routes_due = peers, 0.0

    def read(self) -> list[Sample]:
        peers = self._peers
        if not peers:
            return self._absent(ALONE)
        self._look_up(peers)
        distant = {peer: name for peer in peers if (name := self._routes.get(peer)) != "lo"}
        if not distant:
            return self._absent(SAME_BOX)
        interfaces = sorted({name for name in distant.values() if name})
        if not interfaces:
            return self._absent(NO_ROUTE)
        counters = [sample for name in interfaces for sample in self._interface(name)]
        return [*counters, *self._round_trips(list(distant))]

    def _look_up(self, peers: Sequence[str]) -> None:
        now = self._clock()
        if now >= self._routes_due:
            self._routes = {peer: self._interface_to(peer) for peer in peers}
            self._routes_due = now + ROUTE_SECONDS

    def _interface(self, name: str) -> Iterator[Sample]:
        folder = self._roots.interface(name)
        count = folder / "statistics"
        yield self._counter(LINK_RECEIVED, [count / "rx_bytes"], name)
        yield self._counter(LINK_SENT, [count / "tx_bytes"], name)
        yield self._counter(LINK_ERRORS, [count / "rx_errors", count / "tx_errors"], name)
        megabits = number_of(folder / "speed")
        if megabits is None or megabits <= 0:  # -1 where there is no carrier.
            yield self._missing(LINK_SPEED, NO_SPEED, name)
        else:
            yield measured(
                LINK_SPEED, megabits * 1e6, source="link: sysfs", scope=self.scope, label=name
            )
        for port in sorted(folder.glob("device/infiniband/*/ports/1/counters")):
            words = f"{name} RDMA"
            yield self._counter(LINK_RECEIVED, [port / "port_rcv_data"], words, scale=4.0)
            yield self._counter(LINK_SENT, [port / "port_xmit_data"], words, scale=4.0)

    def _counter(
        self, metric: Metric, files: Sequence[Path], label: str, scale: float = 1.0
    ) -> Sample:
        """RDMA counts words of four bytes."""
        values = [value for path in files if (value := number_of(path)) is not None]
        if len(values) < len(files):
            return self._missing(metric, NO_COUNTER, label)
        return measured(
            metric, sum(values) * scale, source="link: sysfs", scope=self.scope, label=label
        )

    def _round_trips(self, peers: Sequence[str]) -> Iterator[Sample]:
        self._ask_next(peers)
        source = "link: TCP round trip"
        for peer, trip in self._trips.items():
            if trip is None:
                yield self._missing(LINK_ROUND_TRIP, NO_ANSWER, peer, source)
            else:
                yield measured(LINK_ROUND_TRIP, trip, source=source, scope=self.scope, label=peer)

    def _ask_next(self, peers: Sequence[str]) -> None:
        self._trips = {peer: trip for peer, trip in self._trips.items() if peer in peers}
        unasked = [peer for peer in peers if peer not in self._trips]
        now = self._clock()
        if not unasked and now < self._trip_due:
            return
        peer = unasked[0] if unasked else peers[self._turn % len(peers)]
        self._turn += 1
        self._trip_due = now + ROUND_TRIP_SECONDS / min(2, len(peers))
        self._trips[peer] = self._round_trip(peer)

    def _missing(
        self, metric: Metric, reason: str, label: str, source: str = "link: sysfs"
    ) -> Sample:
        return unavailable(metric, reason, source=source, scope=self.scope, label=label)

    def _absent(self, reason: str) -> list[Sample]:
        return [self._missing(metric, reason, "") for metric in METRICS]


def _interface_to(peer: str) -> str | None:
    """`lo` also for an address of this very machine; None without a route."""
    with suppress(OSError):
        family, _kind, _protocol, _name, address = socket.getaddrinfo(
            peer, DISCARD, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # Nothing is sent.
            return _interface_of(str(probe.getsockname()[0]), str(address[0]))
    return None


def _interface_of(own: str, peer: str) -> str | None:
    if own == peer or ip_address(own.partition("%")[0]).is_loopback:
        return "lo"
    for name, addresses in psutil.net_if_addrs().items():
        if any(own == address.address for address in addresses):
            return name
    return None


def _round_trip(peer: str) -> float | None:
    """One exchange of the kernels: a connection made or refused. None without an answer."""
    began = time.perf_counter()
    try:
        with socket.create_connection((peer, DISCARD), timeout=MOST_SECONDS):
            return time.perf_counter() - began
    except ConnectionRefusedError:
        return time.perf_counter() - began
    except OSError:
        return None
