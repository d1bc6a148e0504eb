"""What the heads of a deployment say this second, fetched from them when somebody looks."""

import asyncio
from dataclasses import dataclass

import aiohttp
import msgspec
from channels.db import database_sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.gateway.upstream import session
from dashboard.models import Deployment, Replica
from dashboard.sentences import Sentence
from dashboard.views.live import PRIMARIES_FIRST, replica_name
from engine.config import BLOCK_SIZE
from engine.protocol.stats import EngineStats, RankStats

ANSWER = aiohttp.ClientTimeout(total=1.0)

DOING: dict[str, Promise] = {
    "waiting": gettext_lazy("waiting"),
    "compute": gettext_lazy("computing"),
    "all-reduce": gettext_lazy("all-reduce"),
    "gather": gettext_lazy("gather"),
    "send": gettext_lazy("sending"),
    "receive": gettext_lazy("receiving"),
    "sample": gettext_lazy("drawing tokens"),
}
BRIEF = 1.0
"""Seconds: what a rank has been at for less is not worth a number."""


@dataclass(frozen=True)
class RankNow:
    stats: RankStats
    node: str

    @property
    def doing(self) -> str:
        """Such as `all-reduce, layer 12, 4.2 s`; empty when it is not known."""
        stats = self.stats
        if not stats.doing:
            return ""
        parts = [str(DOING[stats.doing])]
        if stats.layer is not None:
            parts.append(_("layer %(layer)s") % {"layer": stats.layer})
        if stats.doing_seconds is not None and stats.doing_seconds >= BRIEF:
            parts.append(_("%(value)s s") % {"value": f"{stats.doing_seconds:.1f}"})
        return ", ".join(parts)

    @property
    def communicating(self) -> float | None:
        """Share of its steps."""
        stats = self.stats
        if stats.communicate_seconds is None or not stats.step_seconds:
            return None
        return stats.communicate_seconds / stats.step_seconds


@dataclass(frozen=True)
class HeadNow:
    """One replica's head: its words, or why there are none."""

    replica: Replica
    nodes: dict[int, str]
    stats: EngineStats | None
    silence: str = ""

    @property
    def name(self) -> str:
        return replica_name(self.replica)

    @property
    def ranks(self) -> list[RankNow]:
        ranks = self.stats.ranks if self.stats else []
        return [RankNow(rank, self.nodes.get(rank.rank, "?")) for rank in ranks]

    @property
    def last_fault(self) -> Sentence | None:
        fault = self.stats.last_fault if self.stats else None
        return Sentence.of(fault) if fault else None

    @property
    def experts(self) -> list[tuple[int, float, float]]:
        """Of each expert: its number, its share of all tokens, its share of the busiest's."""
        tokens = self.stats.expert_tokens if self.stats else ()
        total, most = sum(tokens), max(tokens, default=0)
        if not total:
            return []
        return [(number, count / total, count / most) for number, count in enumerate(tokens)]

    @property
    def kv_short(self) -> bool:
        """Whether memory held less than the settings allow."""
        stats = self.stats
        wanted = stats.kv_tokens_wanted if stats else None
        return bool(stats and wanted and self.kv_tokens < wanted - BLOCK_SIZE)

    @property
    def kv_tokens(self) -> int:
        return self.stats.kv_blocks_total * BLOCK_SIZE if self.stats else 0


@login_required
async def deployment_engine(request: HttpRequest, name: str) -> HttpResponse:
    """The part of the page that is asked for again every two seconds."""
    replicas = await database_sync_to_async(_living)(name)
    heads = await asyncio.gather(*(ask_head(replica, nodes) for replica, nodes in replicas))
    page: HttpResponse = await database_sync_to_async(render)(
        request, "deployments/_engine.html", {"heads": heads}
    )
    return page


def _living(name: str) -> list[tuple[Replica, dict[int, str]]]:
    deployment = Deployment.objects.filter(name=name).first()
    if deployment is None:
        raise Http404
    rows = deployment.replicas.filter(ended_at=None).prefetch_related("ranks__node")
    return [
        (replica, {rank.rank: rank.node.name for rank in replica.ranks.all()})
        for replica in rows.order_by(*PRIMARIES_FIRST)
    ]


async def ask_head(replica: Replica, nodes: dict[int, str]) -> HeadNow:
    """`nodes`: rank -> the name of its node."""
    headers = {"Authorization": f"Bearer {replica.token}"}
    try:
        async with session().get(
            f"{replica.base_url}/stats", headers=headers, timeout=ANSWER
        ) as answer:
            stats = msgspec.json.decode(await answer.read(), type=EngineStats)
    except (aiohttp.ClientError, TimeoutError, msgspec.MsgspecError):
        return HeadNow(replica, nodes, None, _("Its head does not answer."))
    return HeadNow(replica, nodes, stats)
