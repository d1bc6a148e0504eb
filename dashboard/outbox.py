"""What leaves once a change is committed: group messages, nudges to agents, tasks by name.

Messages carry ids and kinds, never state, and may be lost: connecting and the periodic reconcile
make up for it. So a broker that is down is logged and never undoes the change it was about.
"""

from functools import partial

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

FLEET = "fleet"
"""Any change that a page may want to redraw for."""


def deployment_group(deployment_id: int) -> str:
    """Progress and live log of one deployment."""
    return f"deployment.{deployment_id}"


def node_group(node_id: int) -> str:
    """Nudges to the agent's socket."""
    return f"node.{node_id}"


def announce(kind: str, pk: int) -> None:
    """Tell every open page that this object changed."""
    _later(FLEET, {"type": "event", "event": {"kind": kind, "id": pk}})


def announce_progress(deployment_id: int) -> None:
    """Tell only those who look at this deployment."""
    event = {"kind": "deployment", "id": deployment_id}
    _later(deployment_group(deployment_id), {"type": "event", "event": event})


def announce_log(deployment_id: int, source: str, lines: list[str]) -> None:
    event = {"kind": "log", "id": deployment_id, "source": source, "lines": lines}
    _later(deployment_group(deployment_id), {"type": "event", "event": event})


def nudge(node_id: int) -> None:
    """Have the node's desired state sent to it again."""
    _later(node_group(node_id), {"type": "nudge"})


def take_over(node_id: int, connection: str) -> None:
    """Every socket of this node but `connection` closes."""
    _later(node_group(node_id), {"type": "taken.over", "connection": connection})


def task(name: str, *arguments: int | str, countdown: float = 0.0) -> None:
    """Queue a Celery task by name, with ids alone."""
    transaction.on_commit(partial(_queue, name, arguments, countdown), robust=True)


def _later(group: str, message: dict[str, object]) -> None:
    transaction.on_commit(partial(_send, group, message), robust=True)


def _send(group: str, message: dict[str, object]) -> None:
    async_to_sync(get_channel_layer().group_send)(group, message)


def _queue(name: str, arguments: tuple[int | str, ...], countdown: float) -> None:
    from dashboard.celery import app

    app.send_task(name, args=arguments, countdown=countdown or None)
