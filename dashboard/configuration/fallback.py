"""Whether a fallback's settings can stand in for a deployment. Pure."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_noop as _

from dashboard.choices import FallbackMode, ReturnMode
from dashboard.configuration.declared import SettingError, Values
from dashboard.configuration.engine import ENGINE
from dashboard.sentences import Sentence, sentence_of
from engine.config import BLOCK_SIZE, ParallelPlan
from engine.errors import PlanError
from engine.model_config import ModelConfig
from engine.shards import check_plan

DECLARED = ("tp", "dtype", "kv_dtype", "kv_cache_tokens")
"""Of these an engine's own declaration holds."""


def check_fallback(
    told: Mapping[str, Any], shape: ModelConfig | None, engine: Values
) -> list[SettingError]:
    """Problems, each under `fallback.NAME`; `engine` are the deployment's own settings."""
    if shape is None:
        words = _("There is no model %(name)s in the catalogue.")
        return [SettingError("fallback.model", Sentence(words, name=str(told.get("model"))[:60]))]
    errors = [
        *_choice(told, "mode", FallbackMode.values),
        *_choice(told, "returns", ReturnMode.values),
    ]
    checked, wrong = ENGINE.check({name: told.get(name) for name in DECLARED})
    errors += [SettingError(f"fallback.{error.name}", error.sentence) for error in wrong]
    if errors:
        return errors
    tp, cache = checked["tp"], checked["kv_cache_tokens"]
    assert isinstance(tp, int)
    assert isinstance(cache, int)
    try:
        check_plan(shape, ParallelPlan(tp=tp))
    except PlanError as error:
        return [SettingError("fallback.tp", sentence_of(error))]
    asked = engine.get("max_model_len")
    longest = min(asked if isinstance(asked, int) else shape.context_length, shape.context_length)
    if cache >= longest + BLOCK_SIZE:
        return []
    words = _(
        "One conversation may grow to %(length)s tokens and would not fit. Give the cache at "
        "least %(needed)s tokens, or set a shorter context length."
    )
    sentence = Sentence(words, length=longest, needed=longest + BLOCK_SIZE)
    return [SettingError("fallback.kv_cache_tokens", sentence)]


def _choice(told: Mapping[str, Any], name: str, known: list[str]) -> list[SettingError]:
    if told.get(name) in known:
        return []
    words = _("This must be one of %(choices)s, not %(value)s.")
    sentence = Sentence(words, choices=", ".join(known), value=repr(told.get(name))[:60])
    return [SettingError(f"fallback.{name}", sentence)]
