"""From a message request to the chat request that asks the same."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from dashboard.gateway.dialects.anthropic.asked import (
    UNSUPPORTED,
    Asked,
    Block,
    Choice,
    Counted,
    Message,
    Text,
    Thinking,
    ThinkingConfig,
    Tool,
    ToolResult,
    ToolUse,
)
from dashboard.gateway.dialects.asked import passed, read_as, refuse, wrong

Json = dict[str, Any]

ERROR = "Error: "
"""What a tool's result begins with where it tells of a failure: chats have no field for that."""


def read_asked(fields: Json) -> Asked:
    """Raises ApiError naming the field."""
    refuse(fields, UNSUPPORTED)
    asked = read_as(Asked, fields)
    if asked.max_tokens < 1:
        raise wrong(_("max_tokens must be at least 1."), "max_tokens")
    return asked


def read_counted(fields: Json) -> Counted:
    refuse(fields, UNSUPPORTED)
    return read_as(Counted, fields)


def chat_of(fields: Json, asked: Asked) -> Json:
    return {
        **passed(fields),
        **prompt_of(asked, fields),
        "max_tokens": asked.max_tokens,
        "stop": asked.stop_sequences or None,
        "include_reasoning": shows_thinking(asked.thinking),
    }


def prompt_of(asked: Counted, fields: Json) -> Json:
    """What the prompt follows from."""
    messages = _system(asked.system)
    for message in _joined(asked.messages):
        messages += _messages(message)
    chat: Json = {"model": asked.model, "messages": messages, **_tools(asked)}
    variables = fields.get("chat_template_kwargs") or {}
    if isinstance(variables, dict):
        chat["chat_template_kwargs"] = {"enable_thinking": thinks(asked.thinking)} | variables
    if asked.messages and asked.messages[-1].role == "assistant":
        if messages[-1].get("tool_calls"):
            text = _("The last message calls a tool; its tool_result has to follow.")
            raise wrong(text, f"messages[{len(asked.messages) - 1}]")
        chat |= {"continue_final_message": True, "add_generation_prompt": False}
    if (output := asked.output_config) is not None:
        chat["reasoning_effort"] = output.effort
        if output.format is not None:
            described = {"name": "answer", "schema": output.format.schema, "strict": True}
            chat["response_format"] = {"type": "json_schema", "json_schema": described}
    return chat


def thinks(thinking: ThinkingConfig | None) -> bool:
    """As with Anthropic's, only who asks for it gets any."""
    return thinking is not None and thinking.type != "disabled"


def shows_thinking(thinking: ThinkingConfig | None) -> bool:
    return thinking is not None and thinks(thinking) and thinking.display != "omitted"


def _system(system: str | list[Text] | None) -> list[Json]:
    text = system if isinstance(system, str) else "\n\n".join(part.text for part in system or ())
    return [{"role": "system", "content": text}] if text else []


def _joined(messages: Iterable[Message]) -> list[Message]:
    """Messages in a row of the same role are one: templates want turns."""
    found: list[Message] = []
    for message in messages:
        if found and found[-1].role == message.role:
            before = found.pop()
            message = Message(message.role, [*_blocks(before), *_blocks(message)])
        found.append(message)
    return found


def _blocks(message: Message) -> Sequence[Block]:
    return [Text(message.content)] if isinstance(message.content, str) else message.content


def _messages(message: Message) -> list[Json]:
    if isinstance(message.content, str):
        return [{"role": message.role, "content": message.content}]
    return _spoken(message.content) if message.role == "assistant" else _told(message)


def _told(message: Message) -> list[Json]:
    """Each result of a tool is a message of its own, and so is the text between them."""
    found: list[Json] = []
    texts: list[str] = []
    for block in _blocks(message):
        match block:
            case Text(text):
                texts.append(text)
            case ToolResult() if message.role == "user":
                found += _said(message.role, texts)
                texts = []
                found.append(_result(block))
            case _:
                raise _out_of_place(block, message.role)
    return found + _said(message.role, texts, needed=not found)


def _said(role: str, texts: list[str], *, needed: bool = False) -> list[Json]:
    return [{"role": role, "content": "\n\n".join(texts)}] if texts or needed else []


def _result(result: ToolResult) -> Json:
    content = result.content
    if not isinstance(content, str):
        content = "\n\n".join(part.text for part in content or ())
    if result.is_error:
        content = ERROR + content
    return {"role": "tool", "tool_call_id": result.tool_use_id, "content": content}


def _spoken(blocks: Sequence[Block]) -> list[Json]:
    """All that an assistant said in one turn is one message."""
    message: Json = {"role": "assistant", "content": ""}
    for block in blocks:
        match block:
            case Text(text):
                message["content"] += text
            case Thinking(text):
                message["reasoning_content"] = message.get("reasoning_content", "") + text
            case ToolUse(id, name, given):
                function = {"name": name, "arguments": msgspec.json.encode(given).decode()}
                call = {"id": id, "type": "function", "function": function}
                message.setdefault("tool_calls", []).append(call)
            case _:
                raise _out_of_place(block, "assistant")
    return [message]


def _out_of_place(block: Block, role: str) -> Exception:
    kind = type(block).__struct_config__.tag
    words = {"kind": kind, "role": role}
    return wrong(
        _("A message of %(role)s cannot hold a block of type %(kind)s.") % words, "messages"
    )


def _tools(asked: Counted) -> Json:
    if not asked.tools:
        return {}
    found: Json = {"tools": [_tool(tool) for tool in asked.tools]}
    if (choice := asked.tool_choice) is not None:
        found["tool_choice"] = _choice(choice)
        if choice.disable_parallel_tool_use:
            found["parallel_tool_calls"] = False
    return found


def _tool(tool: Tool) -> Json:
    function: Json = {"name": tool.name, "parameters": tool.input_schema}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _choice(choice: Choice) -> str | Json:
    if choice.type == "tool":
        return {"type": "function", "function": {"name": choice.name}}
    return {"auto": "auto", "any": "required", "none": "none"}[choice.type]
