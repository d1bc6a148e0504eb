"""Whether an engine's settings can work together, for a model and a fleet. Pure."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from django.utils.translation import gettext_noop as _

from dashboard.configuration.declared import SettingError, Value, Values
from dashboard.configuration.engine import ENGINE, engine_config_of, plan_of
from dashboard.sentences import Sentence, sentence_of
from engine.abilities import check_abilities
from engine.config import BLOCK_SIZE, ParallelPlan
from engine.errors import ConfigError, PlanError
from engine.model_config import ModelConfig
from engine.shards import check_plan

WHOLE = ""
"""The name under which a problem of several settings together is told."""


def check_engine(
    values: Mapping[str, object], shape: ModelConfig, abilities: AbstractSet[str] | None
) -> tuple[dict[str, Value], list[SettingError]]:
    """The checked values, and every problem, each under the setting that can mend it.

    `abilities`: what the fleet's processors know (`instruction_sets`); None trusts them.
    """
    checked, errors = ENGINE.check(values)
    if errors:
        return checked, errors
    try:
        plan = plan_of(checked)
    except PlanError as error:
        return checked, [SettingError("rank_weights", sentence_of(error))]
    problems = [*_split(shape, plan), *_lengths(shape, ENGINE.complete(checked))]
    if not problems:
        problems = _numbers(checked, abilities)
    return checked, problems


def _split(shape: ModelConfig, plan: ParallelPlan) -> list[SettingError]:
    if plan.pp > shape.num_layers:
        words = _("This model has %(layers)s layers, so at most %(layers)s stages.")
        return [SettingError("pp", Sentence(words, layers=shape.num_layers))]
    try:
        check_plan(shape, plan)
    except PlanError as error:
        return [SettingError("ep" if str(error).startswith("ep=") else "tp", sentence_of(error))]
    return []


def _lengths(shape: ModelConfig, complete: Values) -> list[SettingError]:
    asked, cache = complete["max_model_len"], complete["kv_cache_tokens"]
    assert isinstance(cache, int)
    if isinstance(asked, int) and asked > shape.context_length:
        words = _("This model reads at most %(limit)s tokens.")
        return [SettingError("max_model_len", Sentence(words, limit=shape.context_length))]
    longest = asked if isinstance(asked, int) else shape.context_length
    if cache >= longest + BLOCK_SIZE:
        return []
    words = _(
        "One conversation may grow to %(length)s tokens and would not fit. Give the cache at "
        "least %(needed)s tokens, or set a shorter context length."
    )
    return [
        SettingError(
            "kv_cache_tokens", Sentence(words, length=longest, needed=longest + BLOCK_SIZE)
        )
    ]


def _numbers(values: Values, abilities: AbstractSet[str] | None) -> list[SettingError]:
    """What no processor of the fleet can do is refused at once."""
    try:
        config = engine_config_of(values)
        if abilities is not None:
            check_abilities(config, set(abilities))
    except ConfigError as error:
        field = "dtype" if abilities is not None else WHOLE
        return [SettingError(field, sentence_of(error))]
    return []
