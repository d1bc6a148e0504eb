"""What every head reports of its ranks is remembered for some minutes."""

from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard.lifecycle.phases import keep_phases
from engine.protocol.stats import EngineStats, RankStats
from monitoring.alerts import phases
from tests.monitoring.cast import launch, make_node


@pytest.mark.django_db
def test_a_report_is_kept_rank_by_rank() -> None:
    rank = RankStats(
        rank=1,
        phase="step",
        connected=True,
        step=88,
        doing="all-reduce",
        layer=12,
        doing_seconds=3.5,
        last_seen_seconds=0.2,
    )
    node = make_node()
    launch("abc", [node])
    keep_phases(node.pk, [EngineStats(launch="abc", status="ready", ranks=[rank])])
    now = timezone.now()
    [moment] = phases.between(["abc"], now - timedelta(minutes=1), now)
    assert moment["status"] == "ready"
    assert moment["ranks"][0] == {
        "rank": 1,
        "phase": "step",
        "doing": "all-reduce",
        "layer": 12,
        "step": 88,
        "doing_seconds": 3.5,
        "silent_seconds": 0.2,
    }
    assert phases.pulses(now) == {"launch:abc:rank1": 0.2}


@pytest.mark.django_db
def test_no_other_node_speaks_for_a_head() -> None:
    launch("abc", [make_node("box-1")])
    rank = RankStats(rank=0, phase="step", connected=True, last_seen_seconds=99.0)
    stats = [EngineStats(launch=name, status="ready", ranks=[rank]) for name in ("abc", "x" * 99)]
    keep_phases(make_node("box-2").pk, stats)
    assert phases.pulses(timezone.now()) == {}
