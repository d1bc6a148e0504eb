"""Boxes at a metered plug and an engine that counts its tokens, second by second."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.utils import timezone

from dashboard.models import Node
from monitoring.metrics import ENERGY, GENERATED_TOKENS, POWER, PROMPT_TOKENS
from monitoring.samples import Kind, Sample, Scope, measured
from monitoring.storage.store import store
from tests.monitoring.cast import frame_of


def whole_minutes_ago(minutes: int) -> datetime:
    now = timezone.now()
    return now.replace(second=0, microsecond=0) - timedelta(minutes=minutes)


def energy(
    joules: float, scope: Scope = "wall", kind: Kind = "measured", subject: str = "node"
) -> Sample:
    return measured(ENERGY, joules, source="pdu", scope=scope, kind=kind, subject=subject)


def power(watts: float, scope: Scope = "wall") -> Sample:
    return measured(POWER, watts, source="pdu", scope=scope)


def tokens(launch: str, prompt: float, generated: float) -> list[Sample]:
    subject = f"launch:{launch}"
    return [
        measured(PROMPT_TOKENS, prompt, source="engine", scope="engine", subject=subject),
        measured(GENERATED_TOKENS, generated, source="engine", scope="engine", subject=subject),
    ]


def keep(node: Node, start: datetime, seconds: Iterable[tuple[int, list[Sample]]]) -> None:
    """Each second's samples, counted from `start`."""
    store(
        [
            frame_of(node.pk, second, start.timestamp() + second, samples)
            for second, samples in seconds
        ]
    )
