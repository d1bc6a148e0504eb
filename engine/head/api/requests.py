"""What clients may ask: OpenAI's chat and completion requests, checked by hand.

A field this engine knows but cannot honour is refused, never silently dropped. Unknown fields are
ignored. docs/api.md describes every field.
"""

from typing import Any

import msgspec

from engine.errors import RequestError
from engine.head.api.fields import Fields
from engine.head.api.forms import Form, read_form
from engine.head.api.messages import read_messages
from engine.head.api.sampling import MAX_ANSWERS, MAX_LOGPROBS, is_id, read_wanted
from engine.head.api.tools import Tools, read_tools
from engine.head.wanted import Wanted
from engine.text.chat import Chat

MAX_PROMPTS = 64
MAX_DOCUMENTS = 256

UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "functions": ([],),
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "web_search_options": (),
    "suffix": ("",),
    "use_beam_search": (False,),
    "length_penalty": (1,),
    "include_stop_str_in_output": (False,),
    "bad_words": ([],),
    "allowed_token_ids": ([],),
    "truncate_prompt_tokens": (),
    "logits_processors": ([],),
    "chat_template": (),
    "mm_processor_kwargs": ({},),
    "prompt_embeds": (),
    "guided_whitespace_pattern": (),
    "return_token_ids": (False,),
    "return_tokens_as_token_ids": (False,),
}
"""Field -> the values that mean "not asked for"."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What both kinds of request have in common."""

    model: str
    wanted: Wanted
    form: Form | None
    stream: bool
    include_usage: bool
    usage_in_chunks: bool
    """Every chunk says the tokens so far: a reader that stops early knows its count."""
    show_control: bool
    """Whether control tokens are part of the answer's text."""


class ChatAsked(Asked, frozen=True, kw_only=True):
    chat: Chat
    tools: Tools
    include_reasoning: bool


class CompletionAsked(Asked, frozen=True, kw_only=True):
    prompts: list[str] | list[list[int]]
    echo: bool
    """Whether the prompt stands before its answer; with logprobs, its own are among them."""
    silent: bool
    """Whether nothing is to follow the prompt."""
    prompt_logprobs: bool
    """Whether the prompt's are wanted in a field of their own."""
    add_bos: bool


def read_chat(payload: bytes) -> ChatAsked:
    """Raises RequestError naming the field."""
    fields = Fields.parse(payload)
    for name in ("echo", "add_special_tokens"):
        fields.refuse_unless(name, (False,))
    max_tokens = fields.integer("max_completion_tokens", 1)
    if max_tokens is None:
        max_tokens = fields.integer("max_tokens", 1)
    wanted = msgspec.structs.replace(
        read_wanted(fields, max_tokens), logprobs=_chat_logprobs(fields)
    )
    tools = read_tools(fields)
    asked = ChatAsked(
        **_common(fields, wanted),
        chat=_chat(fields, tools),
        tools=tools,
        include_reasoning=fields.flag("include_reasoning", default=True),
    )
    _check_form(asked, tools)
    return asked


def read_completion(payload: bytes) -> CompletionAsked:
    """Raises RequestError naming the field. `max_tokens` is 16 unless given, as OpenAI has it."""
    fields = Fields.parse(payload)
    for name in ("tools", "messages"):
        fields.refuse_unless(name, ([],))
    echo = fields.flag("echo")
    max_tokens = fields.integer("max_tokens", 0 if echo else 1)
    # A prompt is scored on the way to a token of its answer, so one is drawn in any case.
    wanted = read_wanted(fields, 16 if max_tokens is None else max(1, max_tokens))
    logprobs = fields.integer("logprobs", 0, MAX_LOGPROBS)
    scored = logprobs if echo and wanted.prompt_logprobs is None else wanted.prompt_logprobs
    asked = CompletionAsked(
        **_common(
            fields, msgspec.structs.replace(wanted, logprobs=logprobs, prompt_logprobs=scored)
        ),
        prompts=_prompts(fields.raw("prompt")),
        echo=echo,
        silent=max_tokens == 0,
        prompt_logprobs=wanted.prompt_logprobs is not None,
        add_bos=fields.flag("add_special_tokens", default=True),
    )
    _check_form(asked, Tools())
    if len(asked.prompts) * wanted.n > MAX_ANSWERS:
        raise RequestError(f"prompts times n must be at most {MAX_ANSWERS}.", param="n")
    return asked


def _common(fields: Fields, wanted: Wanted) -> dict[str, Any]:
    for name, accepted in UNSUPPORTED.items():
        fields.refuse_unless(name, accepted)
    stream = fields.flag("stream")
    options = fields.object("stream_options")
    if options is not None and not stream:
        raise RequestError("stream_options needs stream to be true.", param="stream_options")
    return {
        "model": fields.text("model"),
        "wanted": wanted,
        "form": read_form(fields),
        "stream": stream,
        "include_usage": Fields(options or {}).flag("include_usage"),
        "usage_in_chunks": Fields(options or {}).flag("continuous_usage_stats"),
        "show_control": not fields.flag("skip_special_tokens", default=True),
    }


def _check_form(asked: Asked, tools: Tools) -> None:
    """A form decides where the answer ends, so nothing else may."""
    if asked.form is None and not tools.forced:
        return
    reason = asked.form.param if asked.form else "tool_choice"
    clashes = {
        "ignore_eos": asked.wanted.ignore_eos,
        "min_tokens": asked.wanted.min_tokens > 0,
        "tool_choice": asked.form is not None and bool(tools.forced),
    }
    for name, clash in clashes.items():
        if clash:
            raise RequestError(f"{name} cannot be combined with {reason}.", param=name)


def _chat(fields: Fields, tools: Tools) -> Chat:
    continue_final = fields.flag("continue_final_message")
    # Where the final message is continued there is no header to add; other values are a mistake.
    adds = fields.flag("add_generation_prompt", default=not continue_final)
    if continue_final and adds:
        raise RequestError(
            "add_generation_prompt must be false to continue the final message.",
            param="add_generation_prompt",
        )
    variables = dict(fields.object("chat_template_kwargs") or {})
    if fields.raw("reasoning_effort") is not None:
        variables.setdefault("reasoning_effort", fields.text("reasoning_effort"))
    documents = fields.raw("documents")
    if documents is not None and not (
        isinstance(documents, list)
        and len(documents) <= MAX_DOCUMENTS
        and all(isinstance(document, dict) for document in documents)
    ):
        raise RequestError(
            f"documents must be a list of at most {MAX_DOCUMENTS} objects.", param="documents"
        )
    return Chat(
        messages=read_messages(fields.raw("messages")),
        tools=tools.functions,
        documents=documents,
        variables=variables,
        continue_final=continue_final,
        add_generation_prompt=adds,
    )


def _chat_logprobs(fields: Fields) -> int | None:
    top = fields.integer("top_logprobs", 0, MAX_LOGPROBS)
    if fields.flag("logprobs"):
        return top or 0
    if top:
        raise RequestError("top_logprobs needs logprobs to be true.", param="top_logprobs")
    return None


def _prompts(value: Any) -> list[str] | list[list[int]]:
    """A text, a list of texts, a list of token ids, or a list of such lists."""
    many = value if isinstance(value, list) else [value]
    if many and all(is_id(item) for item in many):
        many = [many]
    if not many or len(many) > MAX_PROMPTS:
        raise RequestError(f"prompt takes 1 to {MAX_PROMPTS} texts.", param="prompt")
    if all(isinstance(item, str) for item in many):
        return many
    if all(isinstance(item, list) and item and all(map(is_id, item)) for item in many):
        return many
    raise RequestError(
        "prompt must be a string, a list of strings, or lists of token ids.", param="prompt"
    )
