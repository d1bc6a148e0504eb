"""What clients may ask: OpenAI's chat and completion requests, checked by hand.

A field this engine knows but cannot honour is refused, never silently dropped. Unknown fields are
ignored.
"""

from typing import Any

import msgspec

from engine.errors import RequestError
from engine.head.api.fields import Fields
from engine.head.engine import Wanted
from engine.text.template import Message

MAX_STOPS = 16
MAX_PROMPTS = 64
ROLES = ("system", "developer", "user", "assistant")

_UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "prompt_logprobs": (0,),
    "logit_bias": ({},),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "audio": (),
    "echo": (False,),
    "suffix": ("",),
    "stop_token_ids": ([],),
    "use_beam_search": (False,),
}
"""Field -> the values that mean "not asked for"."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What both kinds of request have in common."""

    model: str
    wanted: Wanted
    stream: bool
    include_usage: bool
    usage_in_chunks: bool
    """Every chunk says the tokens so far: a reader that stops early knows its count."""


class ChatAsked(Asked, frozen=True, kw_only=True):
    messages: list[Message]
    continue_final: bool


class CompletionAsked(Asked, frozen=True, kw_only=True):
    prompts: list[str] | list[list[int]]


def read_chat(payload: bytes) -> ChatAsked:
    """Raises RequestError naming the field."""
    fields = Fields.parse(payload)
    common = _common(fields)
    continue_final = fields.flag("continue_final_message")
    if not continue_final:
        fields.refuse_unless("add_generation_prompt", (True,))
    max_tokens = fields.integer("max_completion_tokens", 1)
    if max_tokens is None:
        max_tokens = fields.integer("max_tokens", 1)
    return ChatAsked(
        model=common.model,
        wanted=_wanted(fields, max_tokens),
        stream=common.stream,
        include_usage=common.include_usage,
        usage_in_chunks=common.usage_in_chunks,
        messages=_messages(fields.raw("messages")),
        continue_final=continue_final,
    )


def read_completion(payload: bytes) -> CompletionAsked:
    """Raises RequestError naming the field. `max_tokens` is 16 unless given, as OpenAI has it."""
    fields = Fields.parse(payload)
    common = _common(fields)
    max_tokens = fields.integer("max_tokens", 1)
    return CompletionAsked(
        model=common.model,
        wanted=_wanted(fields, 16 if max_tokens is None else max_tokens),
        stream=common.stream,
        include_usage=common.include_usage,
        usage_in_chunks=common.usage_in_chunks,
        prompts=_prompts(fields.raw("prompt")),
    )


def _common(fields: Fields) -> Asked:
    for name, accepted in _UNSUPPORTED.items():
        fields.refuse_unless(name, accepted)
    stream = fields.flag("stream")
    options = fields.raw("stream_options")
    if options is not None and not stream:
        raise RequestError("stream_options needs stream to be true.", param="stream_options")
    if options is not None and not isinstance(options, dict):
        raise RequestError("stream_options must be an object.", param="stream_options")
    return Asked(
        model=fields.text("model"),
        wanted=Wanted(),
        stream=stream,
        include_usage=Fields(options or {}).flag("include_usage"),
        usage_in_chunks=Fields(options or {}).flag("continuous_usage_stats"),
    )


def _wanted(fields: Fields, max_tokens: int | None) -> Wanted:
    top_p = fields.number("top_p", 1.0, 0.0, 1.0)
    if top_p == 0:
        raise RequestError("top_p must be greater than 0.", param="top_p")
    min_tokens = fields.integer("min_tokens", 0) or 0
    if max_tokens is not None and min_tokens > max_tokens:
        raise RequestError("min_tokens must not be more than max_tokens.", param="min_tokens")
    seed = fields.integer("seed", -(2**63), 2**64)
    return Wanted(
        temperature=fields.number("temperature", 1.0, 0.0, 2.0),
        top_p=top_p,
        top_k=max(0, fields.integer("top_k", -1) or 0),
        seed=None if seed is None else seed % 2**63,
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        stop=_stops(fields.raw("stop")),
        ignore_eos=fields.flag("ignore_eos"),
    )


def _stops(value: Any) -> tuple[str, ...]:
    stops = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise RequestError("stop must be a string or a list of strings.", param="stop")
    if len(stops) > MAX_STOPS or not all(stops):
        raise RequestError(f"stop takes at most {MAX_STOPS} non-empty strings.", param="stop")
    return tuple(stops)


def _messages(value: Any) -> list[Message]:
    if not isinstance(value, list) or not value:
        raise RequestError("messages must be a non-empty list.", param="messages")
    return [_message(item, f"messages[{index}]") for index, item in enumerate(value)]


def _message(value: Any, place: str) -> Message:
    if not isinstance(value, dict):
        raise RequestError(f"{place} must be an object.", param=place)
    role = value.get("role")
    if role in ("tool", "function") or value.get("tool_calls"):
        raise RequestError(f"{place}: tools are not supported by this engine yet.", param=place)
    if role not in ROLES:
        raise RequestError(
            f"{place}.role must be one of {', '.join(ROLES)}.", param=f"{place}.role"
        )
    # OpenAI renamed `system` to `developer`; templates know the first name.
    role = "system" if role == "developer" else role
    return {"role": role, "content": _content(value.get("content"), role, f"{place}.content")}


def _content(value: Any, role: str, place: str) -> str:
    if isinstance(value, str):
        return value
    if value is None and role == "assistant":
        return ""
    if not isinstance(value, list):
        raise RequestError(f"{place} must be a string or a list of text parts.", param=place)
    texts: list[str] = []
    for part in value:
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if not isinstance(text, str):
            raise RequestError(f"{place}: only text parts are supported.", param=place)
        texts.append(text)
    return "".join(texts)


def _prompts(value: Any) -> list[str] | list[list[int]]:
    """A text, a list of texts, a list of token ids, or a list of such lists."""
    many = value if isinstance(value, list) else [value]
    if many and all(_is_id(item) for item in many):
        many = [many]
    if not many or len(many) > MAX_PROMPTS:
        raise RequestError(f"prompt takes 1 to {MAX_PROMPTS} texts.", param="prompt")
    if all(isinstance(item, str) for item in many):
        return many
    if all(isinstance(item, list) and item and all(map(_is_id, item)) for item in many):
        return many
    raise RequestError(
        "prompt must be a string, a list of strings, or lists of token ids.", param="prompt"
    )


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
