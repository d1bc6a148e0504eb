"""One reading, honest about where it came from. Imports nothing of ours."""

from typing import Literal

import msgspec

Kind = Literal["measured", "calibrated", "estimated", "derived", "declared", "unavailable"]
Scope = Literal["accelerator", "cpu", "host", "wall", "engine", "process"]


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """`value` is None exactly when `kind` is `unavailable`; then `reason` says why.

    `subject` says what was read: `node`, `launch:<id>` (a replica's engine) or
    `launch:<id>:rank<k>` (one rank). Units are base units: seconds, bytes, ratio 0..1, tokens/s.
    """

    metric: str
    value: float | None
    unit: str
    source: str
    kind: Kind
    scope: Scope
    subject: str = "node"
    reason: str = ""


class Metric(msgspec.Struct, frozen=True):
    name: str
    unit: str


CPU_UTILIZATION = Metric("cpu_utilization_ratio", "ratio")
MEMORY_USED = Metric("memory_used_bytes", "bytes")
MEMORY_TOTAL = Metric("memory_total_bytes", "bytes")
GPU_UTILIZATION = Metric("gpu_utilization_ratio", "ratio")
POWER = Metric("power_watts", "watts")
TOKENS_PER_SECOND = Metric("generation_tokens_per_second", "tokens/s")
TIME_TO_FIRST_TOKEN = Metric("time_to_first_token_seconds", "seconds")
INTER_TOKEN_LATENCY = Metric("inter_token_latency_seconds", "seconds")
REQUESTS_RUNNING = Metric("requests_running", "requests")
REQUESTS_WAITING = Metric("requests_waiting", "requests")
KV_USAGE = Metric("kv_cache_usage_ratio", "ratio")
STEP_SECONDS = Metric("step_seconds", "seconds")
COMMUNICATE_SECONDS = Metric("communicate_seconds", "seconds")
COMMUNICATE_SHARE = Metric("communicate_ratio", "ratio")
BUBBLE = Metric("rank_bubble_ratio", "ratio")
"""Working time that a rank spends without work, waiting for others' stages or for its head."""
"""Of a step's time, the part a rank spent exchanging with the others, waiting included."""
CLOCK_SKEW = Metric("clock_skew_seconds", "seconds")
"""The panel's clock at arrival minus the node's when it read: skew plus the way here."""
PROCESS_CPU = Metric("process_cpu_ratio", "ratio")
"""1.0 is one core kept busy."""
PROCESS_MEMORY = Metric("process_memory_bytes", "bytes")
PROGRESS_AGE = Metric("engine_progress_age_seconds", "seconds")
"""How long an engine with work in hand has got nothing done; 0 while it is idle or working."""
TEMPERATURE = Metric("temperature_celsius", "celsius")
FAN_SPEED = Metric("fan_speed_rpm", "rpm")
NETWORK_RECEIVED = Metric("network_received_bytes_total", "bytes")
NETWORK_SENT = Metric("network_sent_bytes_total", "bytes")


def gettext_noop(text: str) -> str:
    """Marks a fixed sentence for translation; whoever shows it looks its translation up."""
    return text


def unavailable(
    metric: Metric, reason: str, *, source: str, scope: Scope, subject: str = "node"
) -> Sample:
    """The honest form of a value that could not be read; `reason` is a sentence."""
    return Sample(metric.name, None, metric.unit, source, "unavailable", scope, subject, reason)


def measured(
    metric: Metric, value: float, *, source: str, scope: Scope, subject: str = "node"
) -> Sample:
    return Sample(metric.name, value, metric.unit, source, "measured", scope, subject)
