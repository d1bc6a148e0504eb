"""The link probe on a real cable: its interface, what it carries, the round trip, and its loss."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from monitoring.samples import Sample
from tests.engine.boxes import Box, two_boxes, why_not

REASON = why_not()
pytestmark = pytest.mark.skipif(
    REASON is not None and not os.environ.get("CI"), reason=f"NO TWO BOXES: {REASON}"
)
PROGRAM = """
import json, sys
import msgspec
from monitoring.probes.links import LinkProbe
from monitoring.probes.roots import Roots
probe = LinkProbe(Roots())
probe.watch(sys.argv[1:])
print(json.dumps(msgspec.to_builtins(probe.read())))
"""


@pytest.fixture(scope="module")
def boxes() -> Iterator[tuple[Box, Box]]:
    with two_boxes() as made:
        yield made


def read(box: Box, towards: str, folder: Path) -> dict[str, Sample]:
    answer = folder / "answer"
    with answer.open("wb") as output:
        process = box.run(["-c", PROGRAM, towards], os.environ, output)
    assert process.wait(timeout=60) == 0, answer.read_text()
    samples = msgspec.convert(json.loads(answer.read_text()), list[Sample])
    return {sample.metric: sample for sample in samples}


def test_the_cable_is_found_and_measured(boxes: tuple[Box, Box], tmp_path: Path) -> None:
    here, there = boxes
    first = read(here, there.address, tmp_path)
    assert first["link_received_bytes_total"].label == here.wire
    trip = first["link_round_trip_seconds"]
    assert (trip.label, trip.kind) == (there.address, "measured")
    assert trip.value is not None
    assert 0 < trip.value < 0.25
    assert first["link_errors_total"].value == 0.0
    second = read(here, there.address, tmp_path)
    before, after = (s["link_sent_bytes_total"].value for s in (first, second))
    assert before is not None
    assert after is not None
    assert after > before, "the question itself went over the cable"


def test_a_pulled_cable_is_said(boxes: tuple[Box, Box], tmp_path: Path) -> None:
    here, there = boxes
    there.pull_cable()
    try:
        trip = read(here, there.address, tmp_path)["link_round_trip_seconds"]
    finally:
        there.plug_cable()
    assert (trip.value, trip.kind) == (None, "unavailable")


def test_its_own_address_is_no_link(boxes: tuple[Box, Box], tmp_path: Path) -> None:
    here, _there = boxes
    samples = read(here, here.address, tmp_path)
    assert samples["link_round_trip_seconds"].reason.startswith("The other nodes are on this same")
