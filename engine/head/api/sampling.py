"""How an answer is drawn and where it ends: the fields that chats and completions share."""

from typing import Any

from engine.errors import RequestError
from engine.head.api.fields import Fields
from engine.head.wanted import Wanted

MAX_STOPS = 16
MAX_STOP_LENGTH = 1024
MAX_STOP_IDS = 128
MAX_BIASES = 4096
MAX_ANSWERS = 128
MAX_LOGPROBS = 20
PRIORITIES = 2**31 - 1


def read_wanted(fields: Fields, max_tokens: int | None) -> Wanted:
    """Raises RequestError naming the field. Forms, probabilities and ids are read elsewhere."""
    min_tokens = fields.integer("min_tokens", 0) or 0
    if max_tokens is not None and min_tokens > max_tokens:
        raise RequestError("min_tokens must not be more than max_tokens.", param="min_tokens")
    seed = fields.integer("seed", -(2**63), 2**64)
    return Wanted(
        temperature=fields.number("temperature", 1.0, 0.0, 2.0),
        top_p=fields.number("top_p", 1.0, 0.0, 1.0, above=True),
        top_k=max(0, fields.integer("top_k", -1) or 0),
        min_p=fields.number("min_p", 0.0, 0.0, 1.0),
        repetition_penalty=fields.number("repetition_penalty", 1.0, 0.0, 10.0, above=True),
        presence_penalty=fields.number("presence_penalty", 0.0, -2.0, 2.0),
        frequency_penalty=fields.number("frequency_penalty", 0.0, -2.0, 2.0),
        logit_bias=_biases(fields.raw("logit_bias")),
        seed=None if seed is None else seed % 2**63,
        n=_answers(fields),
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        stop=_stops(fields.raw("stop")),
        stop_token_ids=_stop_ids(fields.raw("stop_token_ids")),
        ignore_eos=fields.flag("ignore_eos"),
        prompt_logprobs=_prompt_logprobs(fields),
        priority=fields.integer("priority", -PRIORITIES, PRIORITIES) or 0,
        salt=_salt(fields),
    )


def is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _answers(fields: Fields) -> int:
    n = fields.integer("n", 1, MAX_ANSWERS) or 1
    best_of = fields.integer("best_of", 1, MAX_ANSWERS)
    if best_of not in (None, n):
        raise RequestError(
            "best_of must be n: this engine gives every answer it draws.",
            param="best_of",
            code="unsupported_parameter",
        )
    return n


def _biases(value: Any) -> dict[int, float]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > MAX_BIASES:
        raise RequestError(
            f"logit_bias must be an object of at most {MAX_BIASES} token ids.", param="logit_bias"
        )
    biases: dict[int, float] = {}
    for key, bias in value.items():
        number = isinstance(bias, int | float) and not isinstance(bias, bool)
        if not number or not -100 <= bias <= 100:
            raise RequestError("logit_bias values must be from -100 to 100.", param="logit_bias")
        if not (key.isascii() and key.isdigit() and len(key) < 10):
            raise RequestError(f"logit_bias: {key!r} is not a token id.", param="logit_bias")
        biases[int(key)] = float(bias)
    return biases


def _stops(value: Any) -> tuple[str, ...]:
    stops = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise RequestError("stop must be a string or a list of strings.", param="stop")
    if len(stops) > MAX_STOPS or not all(stops):
        raise RequestError(f"stop takes at most {MAX_STOPS} non-empty strings.", param="stop")
    if any(len(stop) > MAX_STOP_LENGTH for stop in stops):
        raise RequestError(f"A stop string has at most {MAX_STOP_LENGTH} characters.", param="stop")
    return tuple(stops)


def _stop_ids(value: Any) -> tuple[int, ...]:
    ids = [] if value is None else value
    if not isinstance(ids, list) or len(ids) > MAX_STOP_IDS or not all(map(is_id, ids)):
        raise RequestError(
            f"stop_token_ids must be a list of at most {MAX_STOP_IDS} token ids.",
            param="stop_token_ids",
        )
    return tuple(ids)


def _prompt_logprobs(fields: Fields) -> int | None:
    count = fields.integer("prompt_logprobs", 0, MAX_LOGPROBS)
    if count is not None and fields.flag("stream"):
        raise RequestError(
            "prompt_logprobs cannot be streamed; use echo with logprobs.", param="prompt_logprobs"
        )
    return count


def _salt(fields: Fields) -> str:
    return "" if fields.raw("cache_salt") is None else fields.text("cache_salt")
