"""One reading, honest about where it came from. Imports nothing of ours but the metrics."""

from typing import Literal

import msgspec

from monitoring.metrics import Metric

Kind = Literal["measured", "calibrated", "estimated", "derived", "declared", "unavailable"]
Scope = Literal["accelerator", "cpu", "host", "wall", "room", "engine", "process"]


class Sample(msgspec.Struct, frozen=True):
    """`value` is None exactly when `kind` is `unavailable`; then `reason` says why.

    `subject` says what was read: `node`, `gpu:<index>`, `launch:<id>` (a replica's engine) or
    `launch:<id>:rank<k>` (one rank). `label` tells readings of one metric and scope apart: a fan, a
    sensor, `le=0.5`.
    """

    metric: str
    value: float | None
    unit: str
    source: str
    kind: Kind
    scope: Scope
    subject: str = "node"
    reason: str = ""
    label: str = ""


def series_key(metric: str, scope: str, label: str) -> str:
    """What tells the series of one subject apart, on pages and in links: `power_watts@wall`,
    `fan_speed_rpm@host{fan2}`."""
    return f"{metric}@{scope}{{{label}}}" if label else f"{metric}@{scope}"


def gettext_noop(text: str) -> str:
    """Marks a fixed sentence for translation; whoever shows it looks its translation up."""
    return text


def unavailable(
    metric: Metric,
    reason: str,
    *,
    source: str,
    scope: Scope,
    subject: str = "node",
    label: str = "",
) -> Sample:
    """The honest form of a value that could not be read; `reason` is a sentence."""
    return Sample(
        metric.name, None, metric.unit, source, "unavailable", scope, subject, reason, label
    )


def measured(
    metric: Metric,
    value: float,
    *,
    source: str,
    scope: Scope,
    subject: str = "node",
    label: str = "",
    kind: Kind = "measured",
) -> Sample:
    return Sample(metric.name, value, metric.unit, source, kind, scope, subject, "", label)
