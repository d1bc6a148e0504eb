"""Stored frames onto the channel layer. Loss is allowed: pages seed from the database."""

import logging
from typing import Any

import redis
from channels.layers import get_channel_layer

from monitoring.frames import Frame, SubjectReading

log = logging.getLogger(__name__)

FLEET = "telemetry.fleet"
"""Every node and every engine, without its ranks."""


def node_group(node: int) -> str:
    return f"telemetry.node.{node}"


def launch_group(launch: str) -> str:
    """An engine and its ranks."""
    return f"telemetry.launch.{launch}"


def launch_of(subject: str) -> str | None:
    """`abc` for `launch:abc` and `launch:abc:rank0`, None for anything else."""
    kind, _, rest = subject.partition(":")
    return rest.partition(":")[0] if kind == "launch" else None


def is_rank(subject: str) -> bool:
    return subject.count(":") > 1


async def publish(frame: Frame) -> None:
    layer = get_channel_layer()
    try:
        for group, readings in _audiences(frame).items():
            await layer.group_send(group, _message(frame, readings))
    except (redis.RedisError, OSError) as error:
        log.warning("live telemetry was not sent: %s", error)


def _audiences(frame: Frame) -> dict[str, list[SubjectReading]]:
    audiences: dict[str, list[SubjectReading]] = {}
    for reading in frame.readings:
        launch = launch_of(reading.subject)
        group = node_group(frame.node) if launch is None else launch_group(launch)
        audiences.setdefault(group, []).append(reading)
        if not is_rank(reading.subject):
            audiences.setdefault(FLEET, []).append(reading)
    return audiences


def _message(frame: Frame, readings: list[SubjectReading]) -> dict[str, Any]:
    """What `TelemetryConsumer.telemetry_frame` receives."""
    return {
        "type": "telemetry.frame",
        "node": frame.node,
        "at": frame.at.timestamp(),
        "readings": [[r.subject, r.fields, r.numbers] for r in readings],
    }
