"""What chats and completions may ask, as the engine reads it: for programs that want to know. The
engine itself judges every request."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Whole = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Answers = Annotated[int, Meta(ge=1, le=128)]
Scores = Annotated[int, Meta(ge=0, le=20)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Ids = Annotated[list[int], Meta(max_length=128)]
Stop = str | Annotated[list[str], Meta(max_length=16)]


class StreamOptions(msgspec.Struct):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class Shared(msgspec.Struct, kw_only=True):
    """Fields of both."""

    model: str
    best_of: Answers | None = None
    cache_salt: str | None = None
    frequency_penalty: Penalty | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    guided_json: dict[str, Any] | str | None = None
    guided_regex: str | None = None
    ignore_eos: bool | None = None
    logit_bias: dict[str, Annotated[float, Meta(ge=-100, le=100)]] | None = None
    max_tokens: Whole | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    min_tokens: Whole | None = None
    n: Answers | None = None
    presence_penalty: Penalty | None = None
    priority: int | None = None
    prompt_logprobs: Scores | None = None
    repetition_penalty: Annotated[float, Meta(gt=0, le=10)] | None = None
    response_format: dict[str, Any] | None = None
    seed: int | None = None
    skip_special_tokens: bool | None = None
    stop: Stop | None = None
    stop_token_ids: Ids | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    structured_outputs: dict[str, Any] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_k: Annotated[int, Meta(ge=-1)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None


class Part(msgspec.Struct):
    type: Literal["text"]
    text: str


class CalledFunction(msgspec.Struct):
    name: str
    arguments: str | dict[str, Any]


class ToolCall(msgspec.Struct):
    function: CalledFunction
    id: str | None = None
    type: Literal["function"] = "function"


class Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    name: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_call_id: str | None = None
    tool_calls: list[ToolCall] | None = None


class Function(msgspec.Struct):
    name: Annotated[str, Meta(pattern="^[A-Za-z0-9_.-]{1,64}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(msgspec.Struct):
    type: Literal["function"]
    function: Function


class ChatRequest(Shared, kw_only=True):
    messages: Annotated[list[Message], Meta(min_length=1)]
    add_generation_prompt: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    continue_final_message: bool | None = None
    documents: Annotated[list[dict[str, Any]], Meta(max_length=256)] | None = None
    include_reasoning: bool | None = None
    logprobs: bool | None = None
    max_completion_tokens: Positive | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    tools: Annotated[list[Tool], Meta(max_length=128)] | None = None
    top_logprobs: Scores | None = None


class CompletionRequest(Shared, kw_only=True):
    prompt: str | list[Any]
    """One text or several, token ids, or lists of these."""
    add_special_tokens: bool | None = None
    echo: bool | None = None
    logprobs: Scores | None = None
