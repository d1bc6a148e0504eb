"""What every head says its ranks are at, remembered for some minutes."""

from engine.protocol.stats import EngineStats
from monitoring import phases
from monitoring.phases import RankNow


def keep_phases(engines: list[EngineStats]) -> None:
    for stats in engines:
        ranks = [
            RankNow(
                rank.rank,
                rank.phase,
                rank.doing,
                rank.layer,
                rank.step,
                rank.doing_seconds,
                rank.last_seen_seconds,
            )
            for rank in stats.ranks
        ]
        phases.keep(stats.launch, stats.status, ranks)
