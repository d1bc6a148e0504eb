"""Probes are told what the agent knows: what runs, what it leaves free, whether it is at work."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from engine.agent.heads import Heads
from engine.agent.probes import NodeProbes
from engine.agent.supervisor import Supervisor
from engine.agent.telemetry import TelemetryLoop
from engine.protocol.stats import EngineStats
from monitoring.probes.roots import Roots
from tests.engine.agents import ScriptDriver, spec_of


def nothing() -> None: ...


class Node:
    def __init__(self, folder: Path) -> None:
        self.supervisor = Supervisor(nothing, {}, folder)
        self.heads = Heads(self.supervisor, nothing)
        self.probes = NodeProbes(folder, Roots(sysfs=folder, dev=folder))
        self.loop = TelemetryLoop(self.supervisor, self.heads, nothing, self.probes)

    def runs(self, **spec: Any) -> None:
        process = SimpleNamespace(
            spec=spec_of("", role="head", **spec),
            pid=os.getpid(),
            life="alive",
            restarts=0,
            driver=ScriptDriver(),
        )
        self.supervisor.processes[process.spec.key] = cast(Any, process)

    def hears(self, stats: EngineStats) -> None:
        (view,) = self.heads.living()
        view.hear(stats)

    def tell(self) -> NodeProbes:
        self.loop._tell_probes()
        return self.probes


def test_nothing_runs(tmp_path: Path) -> None:
    probes = Node(tmp_path).tell()
    assert (probes.targets, probes.floor, probes.serving) == ({}, None, False)


def test_an_engine_at_work(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.runs(memory_floor=1 << 30)
    probes = node.tell()
    assert probes.targets == {"launch:l1:head": os.getpid()}
    assert probes.floor == 1 << 30
    assert not probes.serving, "nothing was heard of it yet"
    node.hears(EngineStats(launch="l1", status="ready", running=2))
    assert node.tell().serving
    node.hears(EngineStats(launch="l1", status="ready", running=0, waiting=3))
    assert not node.tell().serving
    node.hears(EngineStats(launch="l1", status="ready", running=2))
    node.heads.living()[0].silence = "The head does not answer."
    assert not node.tell().serving, "what it said before does not count any more"


def test_a_floor_that_nobody_set_is_none(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.runs(memory_floor=0)
    assert node.tell().floor is None


def test_everything_a_box_without_anything_tells_has_a_reason_or_a_value(tmp_path: Path) -> None:
    node = Node(tmp_path)
    samples = node.tell().read()
    node.probes.close()
    for sample in samples:
        assert (sample.value is None) == (sample.kind == "unavailable")
        assert bool(sample.reason) == (sample.value is None)
        assert not sample.reason or sample.reason.endswith(".")
    absent = {(sample.metric, sample.scope) for sample in samples if sample.value is None}
    assert {
        ("power_watts", "cpu"),
        ("power_watts", "host"),
        ("energy_joules_total", "cpu"),
        ("energy_joules_total", "host"),
        ("temperature_celsius", "host"),
        ("inlet_temperature_celsius", "host"),
        ("fan_speed_rpm", "host"),
        ("gpu_utilization_ratio", "accelerator"),
        ("link_round_trip_seconds", "host"),
        ("memory_floor_bytes", "host"),
    } <= absent
