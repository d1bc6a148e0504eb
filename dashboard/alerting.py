"""What alerts and post-mortems learn about the fleet."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db.models import F, Min, Q

from dashboard import outbox
from dashboard.choices import NodeStatus, UpdateState
from dashboard.models import Deployment, Event, Job, LogLine, Node, Rank, Replica, UpdateNote
from engine.logs import HIDDEN, redact
from monitoring.alerts.fleet import DeploymentFacts, NodeFacts

LOG_LINES = 500
"""Of each kind in one post-mortem."""
EVENTS = 200


class PanelFleet:
    """`monitoring.alerts.fleet.Fleet`, from the panel's own rows."""

    def nodes(self) -> list[NodeFacts]:
        notes = UpdateNote.objects.filter(state=UpdateState.HELD, update__state=UpdateState.HELD)
        held = dict(notes.values_list("update__node").annotate(Min("at")))
        return [
            NodeFacts(
                node.pk,
                node.name,
                node.status != NodeStatus.PENDING,
                node.status == NodeStatus.ONLINE,
                node.last_seen,
                node.connected_at,
                held=held.get(node.pk),
                simulated=bool(node.made_up),
            )
            for node in Node.objects.defer("inventory").annotate(made_up=F("inventory__simulated"))
        ]

    def deployments(self) -> list[DeploymentFacts]:
        ranks = Rank.objects.filter(replica__ended_at=None)
        places = set(ranks.values_list("replica__deployment", "node"))
        return [
            DeploymentFacts(
                deployment.pk,
                deployment.name,
                deployment.target_itl_ms / 1000 if deployment.target_itl_ms else None,
                frozenset(node for owner, node in places if owner == deployment.pk),
            )
            for deployment in Deployment.objects.all()
        ]

    def changed(self) -> None:
        outbox.announce("alerts", 0)

    def dossier(
        self,
        nodes: Collection[int],
        deployments: Collection[int],
        since: datetime,
        until: datetime,
    ) -> dict[str, Any]:
        lived = Q(ended_at=None) | Q(ended_at__gt=since)
        ran_here = Q(deployment__in=deployments) | Q(ranks__node__in=nodes)
        replicas = Replica.objects.filter(lived & ran_here, created__lt=until).distinct()
        launches = list(replicas.select_related("deployment", "head_node"))
        found = {
            "nodes": [_node(node) for node in Node.objects.filter(pk__in=nodes)],
            "launches": [_launch(replica) for replica in launches],
            "events": _events(nodes, deployments, since, until),
            "jobs": _jobs(deployments, since),
            "kernel_log": _lines(Q(node__in=nodes, source="kernel"), until),
            "engine_log": _lines(Q(launch__in=[one.launch for one in launches]), until),
        }
        tokens = [replica.token for replica in launches if replica.token]
        return {name: _clean(part, tokens) for name, part in found.items()}


def _node(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "address": node.address,
        "status": node.status,
        "reason": str(node.reason),
        "last_seen": node.last_seen,
        "inventory": node.inventory,
        "memory_floor_mb": node.memory_floor_mb,
    }


def _launch(replica: Replica) -> dict[str, Any]:
    """Its plan and versions; its token stays here."""
    return {
        "deployment": replica.deployment.name,
        "launch": replica.launch,
        "role": replica.role,
        "status": replica.status,
        "reason": str(replica.reason),
        "head": replica.head_node.name,
        "settings": replica.config,
        "created": replica.created,
        "ended": replica.ended_at,
        "recoveries": replica.recoveries,
        "ranks": [
            {
                "rank": rank.rank,
                "stage": rank.stage,
                "node": rank.node.name,
                "status": rank.status,
                "detail": str(rank.detail),
                "exit_code": rank.exit_code,
                "layers": [rank.first_layer, rank.last_layer],
                "kv_heads": rank.kv_heads,
                "weight_bytes": rank.weight_bytes,
                "kv_bytes": rank.kv_bytes,
                "kernel": rank.kernel,
                "transport": rank.transport,
            }
            for rank in replica.ranks.select_related("node")
        ],
    }


def _events(
    nodes: Collection[int], deployments: Collection[int], since: datetime, until: datetime
) -> list[dict[str, Any]]:
    mine = Q(node__in=nodes) | Q(deployment__in=deployments)
    found = Event.objects.filter(mine, at__range=(since, until)).select_related(
        "node", "deployment"
    )
    return [
        {
            "at": event.at,
            "level": event.level,
            "node": event.node.name if event.node else None,
            "deployment": event.deployment.name if event.deployment else None,
            "text": event.text,
        }
        for event in reversed(found[:EVENTS])
    ]


def _jobs(deployments: Collection[int], since: datetime) -> list[dict[str, Any]]:
    recent = Q(finished_at=None) | Q(finished_at__gt=since)
    found = Job.objects.filter(recent, deployment__in=deployments).select_related("deployment")
    return [
        {
            "kind": job.kind,
            "deployment": job.deployment.name,
            "status": job.status,
            "reason": str(job.reason),
            "created": job.created,
            "finished": job.finished_at,
            "steps": [
                {"name": step.name, "status": step.status, "detail": str(step.detail)}
                for step in job.steps.all()
            ],
        }
        for job in found.prefetch_related("steps")[:20]
    ]


def _lines(which: Q, until: datetime) -> list[dict[str, Any]]:
    found = LogLine.objects.filter(which, at__lte=until).order_by("-pk")[:LOG_LINES]
    return [
        {
            "at": line.at,
            "launch": line.launch,
            "source": line.source,
            "text": line.text,
        }
        for line in reversed(found)
    ]


def _clean(value: Any, tokens: list[str]) -> Any:
    """The same without a secret in any of its texts."""
    if isinstance(value, str):
        for token in tokens:
            value = value.replace(token, HIDDEN)
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _clean(part, tokens) for key, part in value.items()}
    return [_clean(part, tokens) for part in value] if isinstance(value, list) else value
