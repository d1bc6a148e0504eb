"""Sets of engine settings for a purpose, fitted to the model and to the boxes there are. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

from dashboard.configuration.declared import Value, Values, Words
from engine.config import BLOCK_SIZE
from engine.model_config import ModelConfig

Settings = dict[str, Value]
Fits = Callable[[Values], bool]


@dataclass(frozen=True)
class Preset:
    name: str
    label: Words
    note: Words
    """What it is for and how it gets there."""
    tries: Callable[[Values, ModelConfig], Iterator[Settings]]
    """What it changes, the best first; what has no room is followed by something smaller."""


def preset(
    name: str, values: Values, shape: ModelConfig, fits: Fits = lambda values: True
) -> Settings:
    """`values` with what the preset changes; as they are for an unknown name.

    `fits`: whether settings have room on the fleet. Where none of the preset's have, it changes
    nothing but a cache that is too small for one conversation.
    """
    chosen = next((one for one in PRESETS if one.name == name), None)
    if chosen is None:
        return dict(values)
    for changes in chosen.tries(values, shape):
        tried = {**values, **changes}
        if fits(tried):
            return tried
    needed = _needed(values, shape)
    return {**values, "kv_cache_tokens": max(_cache(values, needed), needed)}


def _latency(values: Values, shape: ModelConfig) -> Iterator[Settings]:
    few: Settings = {"max_batch_size": 4, "token_budget": 256, "target_itl_ms": None}
    yield from _with_caches(few, values, shape)


def _throughput(values: Values, shape: ModelConfig) -> Iterator[Settings]:
    for rows, budget in ((64, 1024), (32, 512)):
        many: Settings = {
            "max_batch_size": rows,
            "token_budget": budget,
            "target_itl_ms": None,
        }
        for cache in (rows * 1024, rows * 512):
            yield {**many, "kv_cache_tokens": max(cache, _needed(values, shape))}
        yield {**many, "kv_cache_tokens": _needed(values, shape)}


def _long_context(values: Values, shape: ModelConfig) -> Iterator[Settings]:
    """The whole context, else the half of it, and so on, but never less than there is now."""
    now = min(_longest(values, shape), shape.context_length)
    least = 2048 if values.get("max_model_len") is None else now
    length = shape.context_length
    while True:
        yield {
            "max_model_len": None if length == shape.context_length else length,
            "max_batch_size": 8,
            "kv_dtype": "int8",
            "kv_cache_tokens": length + BLOCK_SIZE,
        }
        if length // 2 < least:
            return
        length //= 2


def _quiet(values: Values, shape: ModelConfig) -> Iterator[Settings]:
    threads = values.get("threads_per_rank")
    little: Settings = {
        "max_batch_size": 2,
        "token_budget": 128,
        "target_itl_ms": None,
        "threads_per_rank": max(1, threads // 2) if isinstance(threads, int) else 1,
    }
    yield from _with_caches(little, values, shape)


def _with_caches(changes: Settings, values: Values, shape: ModelConfig) -> Iterator[Settings]:
    """With the cache there is, else with one that holds a single conversation."""
    needed = _needed(values, shape)
    yield {**changes, "kv_cache_tokens": max(_cache(values, needed), needed)}
    yield {**changes, "kv_cache_tokens": needed}


def _longest(values: Values, shape: ModelConfig) -> int:
    asked = values.get("max_model_len")
    return asked if isinstance(asked, int) else shape.context_length


def _needed(values: Values, shape: ModelConfig) -> int:
    """Tokens of the cache that one conversation may take."""
    return _longest(values, shape) + BLOCK_SIZE


def _cache(values: Values, default: int) -> int:
    cache = values.get("kv_cache_tokens")
    return cache if isinstance(cache, int) else default


PRESETS = (
    Preset(
        "latency",
        _("Quick answers"),
        _("Few answers at once, each as fast as it can be: a small batch."),
        _latency,
    ),
    Preset(
        "throughput",
        _("Many answers"),
        _(
            "As many tokens a second as there can be, in all: a large batch, long prompts in large "
            "pieces, and a cache for all of them as far as there is room."
        ),
        _throughput,
    ),
    Preset(
        "long-context",
        _("Long conversations"),
        _(
            "The model's whole context, or as much of it as there is room for: keys and values in "
            "8 bits, and few conversations at once."
        ),
        _long_context,
    ),
    Preset(
        "quiet",
        _("Quiet"),
        _(
            "Little work at once: a batch of two on half the processor cores, so that the boxes "
            "stay cool and silent."
        ),
        _quiet,
    ),
)
