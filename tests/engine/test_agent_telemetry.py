"""Readings: numbered, honest about what is missing, and never in the way of the link."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from engine.agent.engine_samples import ENGINE_METRICS, engine_samples, silent_samples
from engine.agent.heads import Heads, HeadView
from engine.agent.home import Home
from engine.agent.process import EngineProcess
from engine.agent.supervisor import Supervisor
from engine.agent.telemetry import TelemetryLoop
from engine.errors import Said
from engine.protocol.stats import EngineStats, RankStats
from monitoring.probes.base import ProbeRunner
from monitoring.samples import Sample
from tests.engine.agents import ScriptDriver, spec_of, until
from tests.engine.control_peer import end, told


def nothing() -> None: ...


def telemetry() -> TelemetryLoop:
    supervisor = Supervisor(nothing, {}, Path("/nowhere"))
    return TelemetryLoop(supervisor, Heads(supervisor, nothing))


async def test_readings_are_numbered_and_name_what_they_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.agent.outbox.CLOCK_SECONDS", 0.0)
    loop = telemetry()
    running = asyncio.create_task(loop.run())
    await until(lambda: len(loop.outbox) >= 2, "two readings")
    await end(running)
    first, second = list(loop.outbox.outgoing())[:2]
    assert (first.seq, second.seq) == (0, 1)
    assert first.at < second.at
    metrics = set()
    for samples in told([first, second])[1].values():
        for sample in samples:
            assert sample.source
            assert (sample.value is None) == (sample.kind == "unavailable")
            assert bool(sample.reason) == (sample.value is None)
            metrics.add(sample.metric)
    expected = {"cpu_utilization_ratio", "memory_used_bytes", "power_watts", "clock_skew_seconds"}
    assert expected <= metrics


async def test_a_probe_that_hangs_costs_host_readings_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()

    def hang(_: ProbeRunner) -> list[Sample]:
        release.wait(30)
        return []

    monkeypatch.setattr(ProbeRunner, "read", hang)
    monkeypatch.setattr("engine.agent.telemetry.PERIOD_SECONDS", 0.02)
    loop = telemetry()
    running = asyncio.create_task(loop.run())
    await until(lambda: len(loop.outbox) >= 5, "messages in spite of the probe")
    release.set()
    await end(running)


def test_absent_engine_values_carry_their_reason() -> None:
    idle = EngineStats(
        launch="l1", status="ready", ranks=[RankStats(rank=0, phase="idle", connected=False)]
    )
    samples = {(s.subject, s.metric): s for s in engine_samples(idle, stalled_for=0.0)}
    tokens = samples["launch:l1", "generation_tokens_per_second"]
    assert (tokens.value, tokens.kind) == (None, "unavailable")
    assert tokens.reason == "Nothing was generated in the last second."
    assert samples["launch:l1", "requests_running"].value == 0.0
    step = samples["launch:l1:rank0", "step_seconds"]
    assert step.reason == "The rank is not connected to its head."


def test_the_share_of_waiting_for_others_is_derived() -> None:
    rank = RankStats(
        rank=1, phase="step", connected=True, step_seconds=0.02, communicate_seconds=0.005
    )
    stats = EngineStats(launch="l1", status="ready", ranks=[rank])
    samples = {(s.subject, s.metric): s for s in engine_samples(stats, stalled_for=0.0)}
    share = samples["launch:l1:rank1", "communicate_ratio"]
    assert (share.value, share.kind) == (0.25, "derived")


def test_a_silent_head_has_no_values() -> None:
    samples = silent_samples("l1", "The head does not answer.")
    assert len(samples) == len(ENGINE_METRICS)
    assert {(s.value, s.reason) for s in samples} == {(None, "The head does not answer.")}


def head_view() -> HeadView:
    spec = spec_of("", role="head")
    return HeadView(
        EngineProcess(spec, Home(Path("/nowhere"), {"script": ScriptDriver()}, nothing))
    )


def test_counters_and_step_phases_are_no_news_but_status_is() -> None:
    view = head_view()
    assert not view.has_news()
    rank = RankStats(rank=0, phase="idle", connected=True)
    view.hear(EngineStats(launch="l1", status="ready", ranks=[rank]))
    assert view.has_news()
    busy = RankStats(rank=0, phase="step", connected=True, step=9)
    view.hear(EngineStats(launch="l1", status="ready", ranks=[busy], steps=9, running=1))
    assert not view.has_news()
    view.hear(EngineStats(launch="l1", status="failed", detail=Said("rank 0 is gone")))
    assert view.has_news()


def test_work_without_progress_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    view = head_view()
    stuck = EngineStats(launch="l1", status="ready", running=1, steps=5)
    view.hear(stuck)
    now += 31.0
    view.hear(stuck)
    assert view.stalled_for == 31.0
    report = view.reported()
    assert report is not None
    assert "no progress" in str(report.detail)
    view.hear(EngineStats(launch="l1", status="ready", running=1, steps=6))
    assert view.stalled_for == 0.0


def test_an_old_answer_is_marked_as_old(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    view = head_view()
    view.hear(EngineStats(launch="l1", status="ready"))
    assert view.has_news()
    view.silence = "The head does not answer."
    assert not view.has_news()
    now += 6.0
    assert view.has_news()
    report = view.reported()
    assert report is not None
    assert str(report.detail) == "The head does not answer."
