"""The picture of a deployment's plan: stages of ranks, each with what it holds."""

from dataclasses import dataclass

from dashboard.choices import RankStatus, ReplicaRole
from dashboard.models import Deployment, Rank, Replica
from dashboard.views.live import PRIMARIES_FIRST, replica_name
from engine.config import ParallelPlan
from engine.errors import PlanError
from engine.model_config import ModelConfig
from engine.shards import RankShare, rank_shares


@dataclass(frozen=True)
class Cell:
    """One rank: its share by arithmetic, and its row once it is placed."""

    share: RankShare
    model: ModelConfig
    row: Rank | None

    @property
    def latent(self) -> bool:
        """Whether every rank holds the one latent of all heads, and heads alone are split."""
        return self.model.latent is not None

    @property
    def kv_heads_total(self) -> int:
        return self.model.num_kv_heads

    @property
    def heads_total(self) -> int:
        return self.model.num_heads

    @property
    def shares_kv_heads(self) -> bool:
        """Whether another rank holds the same keys, for other query heads."""
        return self.latent or self.share.heads.size < self.kv_heads * self.model.kv_group_size

    @property
    def experts_total(self) -> int:
        return self.model.experts.count if self.model.experts else 0

    @property
    def last_expert(self) -> int:
        return self.share.experts.stop - 1

    @property
    def expert_percent(self) -> int:
        """How much of each of its experts is here."""
        experts = self.model.experts
        return (
            round(100 * self.share.expert_columns.size / experts.intermediate_size)
            if experts
            else 100
        )

    @property
    def kv_heads(self) -> int:
        return self.share.kv_heads.size

    @property
    def held(self) -> list[bool]:
        """One entry a KV head of the model, or a query head where a latent serves all: is it
        here?"""
        if self.latent:
            return [head in self.share.heads for head in range(self.heads_total)]
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


@dataclass(frozen=True)
class Launch:
    """A replica that runs, or the plan of one that would."""

    name: str
    """Of one among several; empty for the only one."""
    replica: Replica | None
    stages: list[Stage]


def draw_launches(deployment: Deployment) -> list[Launch]:
    """What runs, primaries first; the plan alone where nothing does."""
    rows = deployment.replicas.filter(ended_at=None).select_related("head_node", "model")
    replicas = list(rows.order_by(*PRIMARIES_FIRST))
    if not replicas:
        return [Launch("", None, _stages(deployment.model.shape, deployment.plan, {}))]
    several = len(replicas) > 1 or replicas[0].role == ReplicaRole.FALLBACK
    return [_launch(deployment, replica, several) for replica in replicas]


def _launch(deployment: Deployment, replica: Replica, several: bool) -> Launch:
    model = replica.model or deployment.model
    rows = {row.rank: row for row in replica.ranks.select_related("node")}
    stages = _stages(model.shape, replica.engine_config.plan, rows)
    return Launch(replica_name(replica) if several else "", replica, stages)


def _stages(model: ModelConfig, plan: ParallelPlan, rows: dict[int, Rank]) -> list[Stage]:
    """Stages in order; empty when the plan does not fit the model."""
    try:
        shares = rank_shares(model, plan)
    except PlanError:
        return []
    cells = [Cell(share, model, rows.get(share.rank)) for share in shares]
    return [
        Stage(stage, [cell for cell in cells if cell.share.stage == stage])
        for stage in range(plan.pp)
    ]
