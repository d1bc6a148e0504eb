"""What every head says its ranks are at, remembered for some minutes."""

from dashboard.models import Replica
from engine.protocol.stats import EngineStats
from monitoring.alerts import phases
from monitoring.alerts.phases import RankNow


def keep_phases(node_id: int, engines: list[EngineStats]) -> None:
    """Of heads that are on the node: no other node speaks for them."""
    if not engines:
        return
    told = Replica.objects.filter(head_node=node_id, launch__in=[one.launch for one in engines])
    heads = set(told.values_list("launch", flat=True))
    for stats in engines:
        if stats.launch not in heads:
            continue
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
