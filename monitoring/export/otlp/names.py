"""What readings are called in OpenTelemetry: one table, as those conventions still move. Pure."""

from dataclasses import dataclass

from monitoring.metrics import METRICS

PREFIX = "tandem."
UNITS = {
    "seconds": "s",
    "bytes": "By",
    "ratio": "1",
    "watts": "W",
    "joules": "J",
    "celsius": "Cel",
    "hertz": "Hz",
    "bits/s": "bit/s",
    "tokens/s": "{token}/s",
    "dB(A)": "dB",
    "rpm": "{revolution}/min",
}
"""UCUM, as the conventions ask; anything else is counted in itself."""
SUFFIXES = ("_total", "_seconds", "_bytes", "_ratio", "_watts", "_joules", "_celsius", "_hertz")
"""A unit is no part of a name there."""


@dataclass(frozen=True)
class Known:
    """What a semantic convention calls a metric, and what it asks to be said with it."""

    name: str
    attributes: tuple[tuple[str, str], ...] = ()


GEN_AI = (("gen_ai.operation.name", "chat"), ("gen_ai.provider.name", "tandem"))
CONVENTIONS = {
    "time_to_first_token_seconds_bucket": Known("gen_ai.server.time_to_first_token", GEN_AI),
    "request_duration_seconds_bucket": Known("gen_ai.server.request.duration", GEN_AI),
    "gpu_utilization_ratio": Known("hw.gpu.utilization", (("hw.type", "gpu"),)),
    "gpu_memory_used_bytes": Known("hw.gpu.memory.usage", (("hw.type", "gpu"),)),
    "gpu_memory_total_bytes": Known("hw.gpu.memory.limit", (("hw.type", "gpu"),)),
    "fan_speed_rpm": Known("hw.fan.speed", (("hw.type", "fan"),)),
}
"""Told under these names too."""


def own_name(metric: str) -> str:
    name = metric
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return PREFIX + name


def unit_of(metric: str) -> str:
    unit = METRICS[metric].unit if metric in METRICS else ""
    counted = "{" + unit.removesuffix("s") + "}"
    return UNITS.get(unit, counted if unit else "1")
