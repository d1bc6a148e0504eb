"""From a request for a response to the chat request that asks the same."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.utils.translation import gettext as _

from dashboard.gateway.dialects.asked import (
    passed,
    read_as,
    refuse,
    unsupported_field,
    wrong,
)
from dashboard.gateway.dialects.responses.asked import (
    CARRIED,
    ITEMS,
    LOGPROBS,
    UNSUPPORTED,
    Asked,
    Call,
    CallOutput,
    Counted,
    Format,
    Item,
    Message,
    Named,
    Reasoning,
    Text,
    Tool,
)
from dashboard.gateway.errors import ApiError

Json = dict[str, Any]


def read_asked(fields: Json) -> Asked:
    """Raises ApiError naming the field."""
    _refuse(fields)
    asked = read_as(Asked, fields)
    if asked.max_output_tokens is not None and asked.max_output_tokens < 1:
        raise wrong(_("max_output_tokens must be at least 1."), "max_output_tokens")
    for index, name in enumerate(asked.include or ()):
        if name not in (LOGPROBS, CARRIED):
            raise unsupported_field(f"include[{index}]")
    return asked


def read_counted(fields: Json) -> Counted:
    _refuse(fields)
    return read_as(Counted, fields)


def chat_of(fields: Json, asked: Asked) -> Json:
    chat: Json = {**passed(fields), **prompt_of(asked, fields)}
    chat |= {"max_tokens": asked.max_output_tokens, "stop": fields.get("stop")}
    if wants_scores(asked):
        chat |= {"logprobs": True, "top_logprobs": asked.top_logprobs or 0}
    return chat


def wants_scores(asked: Asked) -> bool:
    return bool(asked.top_logprobs) or LOGPROBS in (asked.include or ())


def prompt_of(asked: Counted, fields: Json) -> Json:
    """What the prompt follows from."""
    messages: list[Json] = []
    if asked.instructions:
        messages.append({"role": "system", "content": asked.instructions})
    messages += _messages(_items(asked.input))
    chat: Json = {"model": asked.model, "messages": messages, **_tools(asked)}
    if asked.reasoning is not None and asked.reasoning.effort is not None:
        chat["reasoning_effort"] = asked.reasoning.effort
        if asked.reasoning.effort == "none":
            variables = fields.get("chat_template_kwargs") or {}
            if isinstance(variables, dict):
                chat["chat_template_kwargs"] = {"enable_thinking": False} | variables
    if asked.text is not None and asked.text.format is not None:
        chat["response_format"] = _format(asked.text.format)
    return chat


def _refuse(fields: Json) -> None:
    if fields.get("previous_response_id") is not None:
        text = _(
            "previous_response_id is not supported: responses are not kept here. Send the items "
            "of the conversation in input."
        )
        raise ApiError(text, status=400, code="unsupported_parameter", param="previous_response_id")
    refuse(fields, UNSUPPORTED)


def _items(given: str | list[Json] | None) -> list[Item]:
    if given is None or isinstance(given, str):
        return [Message("user", given)] if given else []
    return [_item(item, f"input[{index}]") for index, item in enumerate(given)]


def _item(item: Json, place: str) -> Item:
    kind = item.get("type") or "message"
    if not isinstance(kind, str) or kind not in ITEMS:
        raise unsupported_field(f"{place}.type")
    # Null is absent here, too: clients send back items as they got them.
    return read_as(ITEMS[kind], {k: v for k, v in item.items() if v is not None}, place)


def _messages(items: Iterable[Item]) -> list[Json]:
    """What an assistant said in a row, thoughts and calls included, is one message."""
    found: list[Json] = []
    for item in items:
        if isinstance(item, Message) and item.role != "assistant":
            found.append({"role": item.role, "content": _text(item.content)})
        elif isinstance(item, CallOutput):
            told = {"tool_call_id": item.call_id, "content": _text(item.output)}
            found.append({"role": "tool", **told})
        else:
            _speak(found, item)
    return found


def _speak(found: list[Json], item: Item) -> None:
    if not found or found[-1]["role"] != "assistant" or _begins(found[-1], item):
        found.append({"role": "assistant", "content": ""})
    message = found[-1]
    match item:
        case Reasoning(summary, content):
            text = _text(content or summary or [])
            message["reasoning_content"] = message.get("reasoning_content", "") + text
        case Message(_role, content):
            message["content"] += _text(content)
        case Call(id, name, arguments):
            function = {"name": name, "arguments": arguments}
            call = {"id": id, "type": "function", "function": function}
            message.setdefault("tool_calls", []).append(call)


def _begins(message: Json, item: Item) -> bool:
    """Whether it belongs to a turn behind this message: thoughts come first and calls last."""
    if isinstance(item, Reasoning):
        return bool(message["content"] or message.get("tool_calls"))
    return isinstance(item, Message) and bool(message.get("tool_calls"))


def _text(content: str | Sequence[Text]) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)


def _tools(asked: Counted) -> Json:
    if not asked.tools:
        return {}
    found: Json = {"tools": [_tool(tool) for tool in asked.tools]}
    if asked.parallel_tool_calls is not None:
        found["parallel_tool_calls"] = asked.parallel_tool_calls
    choice = asked.tool_choice
    if isinstance(choice, Named):
        found["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice is not None:
        found["tool_choice"] = choice
    return found


def _tool(tool: Tool) -> Json:
    function: Json = {"name": tool.name}
    for name in ("description", "parameters", "strict"):
        if (value := getattr(tool, name)) is not None:
            function[name] = value
    return {"type": "function", "function": function}


def _format(form: Format) -> Json:
    if form.type != "json_schema":
        return {"type": form.type}
    described = {"name": form.name or "answer", "schema": form.schema}
    return {"type": "json_schema", "json_schema": described}
