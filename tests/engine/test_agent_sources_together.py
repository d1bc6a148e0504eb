"""A BMC, a PDU and a meter on loopback, read by the real readers at once."""

import time
from collections.abc import Callable
from pathlib import Path

from engine.agent.sources import Sources
from monitoring.probes.redfish.client import FAILED
from monitoring.samples import Sample
from monitoring.sources import MeterSource, PduSource, RedfishSource
from tests.peers import bmc as bmcs
from tests.peers import meter as meters
from tests.peers import pdu as pdus
from tests.peers.bmc import PASSWORD, USER, make_certificate

DEADLINE_SECONDS = 20.0
METRICS = f"{bmcs.CHASSIS}/EnvironmentMetrics"


def until(sources: Sources, condition: Callable[[dict[str, Sample]], bool], what: str) -> None:
    ends = time.monotonic() + DEADLINE_SECONDS
    while not condition(seen(sources)):
        assert time.monotonic() < ends, what
        time.sleep(0.02)


def seen(sources: Sources) -> dict[str, Sample]:
    return {f"{s.metric}@{s.scope}": s for s in sources.with_own([]) if s.label in ("", "1 m")}


def test_each_fails_and_recovers_for_itself(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    with (
        bmcs.serve(certificate, bmcs.modern()) as bmc,
        pdus.serve() as pdu,
        meters.serve(b"41.3 dBA\r\n") as meter,
    ):
        pdu.numbers["1.3.6.1.4.1.318.1.1.26.4.3.1.5.1"] = 14
        sources = Sources()
        sources.set(
            [
                RedfishSource(
                    name="bmc",
                    url=bmc.url,
                    username=USER,
                    password=PASSWORD,
                    fingerprint=certificate.fingerprint,
                    seconds=0.1,
                ),
                PduSource(
                    name="rack",
                    host="127.0.0.1",
                    port=pdu.port,
                    profile="apc",
                    community=pdus.COMMUNITY,
                    seconds=0.1,
                ),
                MeterSource(name="desk", device=meter.device),
            ]
        )
        try:
            until(sources, lambda now: now["power_watts@host"].value == 412.5, "the BMC's watts")
            until(sources, lambda now: now["power_watts@wall"].value == 140, "the PDU's watts")
            until(sources, lambda now: now["noise_dba@room"].value is not None, "a level")
            bmc.mishaps[METRICS] = "error"
            until(sources, lambda now: now["power_watts@host"].reason == FAILED, "its failure")
            until(
                sources, lambda now: now["power_watts@wall"].value == 140, "the PDU's watts still"
            )
            bmc.mishaps.clear()
            until(sources, lambda now: now["power_watts@host"].value == 412.5, "its recovery")
        finally:
            sources.close()
        assert not bmc.sessions
