"""The picture of a deployment's plan: stages of ranks, each with what it holds."""

from dataclasses import dataclass

from dashboard.choices import RankStatus
from dashboard.models import Deployment, Rank, Replica
from engine.errors import PlanError
from engine.shards import RankShare, rank_shares


@dataclass(frozen=True)
class Cell:
    """One rank: its share by arithmetic, and its row once it is placed."""

    share: RankShare
    kv_heads_total: int
    row: Rank | None

    @property
    def kv_heads(self) -> int:
        return self.share.kv_heads.size

    @property
    def held(self) -> list[bool]:
        """One entry a KV head of the model: is it here?"""
        return [head in self.share.kv_heads for head in range(self.kv_heads_total)]

    @property
    def first_layer(self) -> int:
        return self.share.layers.start

    @property
    def last_layer(self) -> int:
        return self.share.layers.stop - 1

    @property
    def percent(self) -> int | None:
        """Loading progress while there is any to show."""
        if self.row is None or self.row.progress is None:
            return None
        loading = self.row.status in (RankStatus.STARTING, RankStatus.LOADING)
        return round(100 * self.row.progress) if loading else None


@dataclass(frozen=True)
class Stage:
    index: int
    cells: list[Cell]


def draw_plan(deployment: Deployment, replica: Replica | None) -> list[Stage]:
    """Stages in order; empty when the plan does not fit the model."""
    model = deployment.model.shape
    config = replica.engine_config if replica else None
    plan = config.plan if config else deployment.plan
    try:
        shares = rank_shares(model, plan)
    except PlanError:
        return []
    rows = {row.rank: row for row in replica.ranks.select_related("node")} if replica else {}
    cells = [Cell(share, model.num_kv_heads, rows.get(share.rank)) for share in shares]
    return [
        Stage(stage, [cell for cell in cells if cell.share.stage == stage])
        for stage in range(plan.pp)
    ]
