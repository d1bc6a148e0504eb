"""Sets of engine settings for a purpose, fitted to the model. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

from dashboard.configuration.declared import Value, Values, Words
from engine.config import BLOCK_SIZE
from engine.model_config import ModelConfig


@dataclass(frozen=True)
class Preset:
    name: str
    label: Words
    note: Words


PRESETS = (
    Preset("latency", _("Quick answers"), _("Few answers at once, each as fast as it can be.")),
    Preset("throughput", _("Many answers"), _("As many tokens a second as there can be, in all.")),
    Preset(
        "long-context", _("Long conversations"), _("The model's whole context, in a smaller cache.")
    ),
    Preset("quiet", _("Quiet"), _("Little work at once: the boxes stay cool and silent.")),
)


def preset(name: str, values: Values, shape: ModelConfig) -> dict[str, Value]:
    """`values` with what the preset changes; as they are for an unknown name."""
    longest = values.get("max_model_len")
    needed = (longest if isinstance(longest, int) else shape.context_length) + BLOCK_SIZE
    cache = values.get("kv_cache_tokens")
    enough = max(needed, cache if isinstance(cache, int) else 0)
    changes: Mapping[str, dict[str, Value]] = {
        "latency": {"max_batch_size": 4, "token_budget": 256, "target_itl_ms": None},
        "throughput": {
            "max_batch_size": 64,
            "token_budget": 1024,
            "target_itl_ms": None,
            "kv_cache_tokens": max(enough, 32_768),
        },
        "long-context": {
            "max_model_len": None,
            "max_batch_size": 8,
            "kv_dtype": "int8",
            "kv_cache_tokens": shape.context_length + BLOCK_SIZE,
        },
        "quiet": {"max_batch_size": 2, "token_budget": 128, "target_itl_ms": None},
    }
    return {**values, **changes.get(name, {})}
