"""OpenTelemetry: readings and requests pushed to a collector, when the standard variables name one.

Off, this costs nothing: the SDK is imported by the first push or the first traced request.
"""

import os
from collections.abc import Mapping
from typing import Literal

Signal = Literal["metrics", "traces"]

DEFAULT_INTERVAL_SECONDS = 60.0


def wanted(signal: Signal, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether there is somewhere to send it."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environment.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip().lower() == "none":
        return False
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    return any(environment.get(name, "").strip() for name in names)


def interval_seconds(environment: Mapping[str, str] = os.environ) -> float:
    """Between two pushes of readings; what is no number is ignored, as the standard asks."""
    value = environment.get("OTEL_METRIC_EXPORT_INTERVAL", "").strip()
    milliseconds = int(value) if value.isascii() and value.isdecimal() else 0
    return max(1.0, milliseconds / 1000) if milliseconds else DEFAULT_INTERVAL_SECONDS
