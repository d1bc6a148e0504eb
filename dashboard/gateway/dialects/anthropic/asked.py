"""What Anthropic's clients ask, as it is declared. Fields nobody asks for are ignored."""

from typing import Any, Literal

import msgspec


class Text(msgspec.Struct, tag="text"):
    text: str


class Thinking(msgspec.Struct, tag="thinking"):
    thinking: str
    signature: str | None = None


class ToolUse(msgspec.Struct, tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]


class ToolResult(msgspec.Struct, tag="tool_result"):
    tool_use_id: str
    content: str | list[Text] | None = None
    is_error: bool | None = None


Block = Text | Thinking | ToolUse | ToolResult


class Message(msgspec.Struct):
    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class Tool(msgspec.Struct):
    name: str
    input_schema: dict[str, Any]
    description: str | None = None
    type: Literal["custom"] | None = None
    strict: bool | None = None


class Choice(msgspec.Struct):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class ThinkingConfig(msgspec.Struct):
    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: int | None = None
    display: Literal["summarized", "omitted"] | None = None


class Format(msgspec.Struct):
    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(msgspec.Struct):
    effort: str | None = None
    format: Format | None = None


class Counted(msgspec.Struct, kw_only=True):
    """What `count_tokens` takes, and every message has."""

    model: str
    messages: list[Message]
    system: str | list[Text] | None = None
    tools: list[Tool] | None = None
    tool_choice: Choice | None = None
    thinking: ThinkingConfig | None = None
    output_config: OutputConfig | None = None


class Asked(Counted, kw_only=True):
    max_tokens: int
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None


UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "container": (),
    "context_management": ({}, {"edits": []}),
    "fallbacks": ([],),
    "mcp_servers": ([],),
    "speed": ("standard",),
}
"""Field -> the values that mean "not asked for"."""
