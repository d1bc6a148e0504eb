"""What OpenAI's clients ask of `/v1/responses`, as it is declared. Fields nobody asks for are
ignored."""

from typing import Any, Literal

import msgspec


class Text(msgspec.Struct):
    """Of a message, of what a tool gave, or of reasoning."""

    type: Literal["input_text", "output_text", "text", "reasoning_text", "summary_text"]
    text: str


class Message(msgspec.Struct):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[Text]
    type: Literal["message"] = "message"


class Call(msgspec.Struct):
    call_id: str
    name: str
    arguments: str
    type: Literal["function_call"] = "function_call"


class CallOutput(msgspec.Struct):
    call_id: str
    output: str | list[Text]
    type: Literal["function_call_output"] = "function_call_output"


class Reasoning(msgspec.Struct):
    summary: list[Text] | None = None
    content: list[Text] | None = None
    type: Literal["reasoning"] = "reasoning"


Item = Message | Call | CallOutput | Reasoning
ITEMS: dict[str, type[Item]] = {
    "message": Message,
    "function_call": Call,
    "function_call_output": CallOutput,
    "reasoning": Reasoning,
}


class Tool(msgspec.Struct):
    type: Literal["function"]
    name: str
    parameters: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class Named(msgspec.Struct):
    type: Literal["function"]
    name: str


class Format(msgspec.Struct):
    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    description: str | None = None


class TextConfig(msgspec.Struct):
    format: Format | None = None
    verbosity: Literal["medium"] | None = None


class ReasoningConfig(msgspec.Struct):
    effort: str | None = None
    summary: str | None = None


class Counted(msgspec.Struct, kw_only=True):
    """What `input_tokens` takes, and every response has."""

    model: str
    input: str | list[dict[str, Any]] | None = None
    instructions: str | None = None
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto", "required"] | Named | None = None
    parallel_tool_calls: bool | None = None
    reasoning: ReasoningConfig | None = None
    text: TextConfig | None = None


class Asked(Counted, kw_only=True):
    max_output_tokens: int | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_logprobs: int | None = None
    include: list[str] | None = None
    metadata: dict[str, str] | None = None
    user: str | None = None


LOGPROBS = "message.output_text.logprobs"
CARRIED = "reasoning.encrypted_content"
"""So that reasoning can be sent back; here it can as it is, in plain text."""

UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "background": (False,),
    "context_management": ([],),
    "conversation": (),
    "moderation": (),
    "n": (1,),
    "previous_response_id": (),
    "prompt": (),
    "truncation": ("disabled",),
}
"""Field -> the values that mean "not asked for"."""
