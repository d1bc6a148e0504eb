"""Tools for a model whose template knows none: told in a system message, in Hermes' words.

Such a model may still not call them; `tool_choice` can make it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.text.tools.hermes import CLOSE, OPEN
from engine.text.tools.style import Function

Message = Mapping[str, Any]

_LESSON = """You may call one or more functions to help the user.

The functions, as JSON inside <tools></tools>:
<tools>
{tools}
</tools>

For each call answer with a JSON object inside <tool_call></tool_call>:
<tool_call>
{{"name": <function name>, "arguments": <object>}}
</tool_call>"""


def taught(messages: Sequence[Message], tools: Sequence[Function]) -> list[Message]:
    """The messages with the lesson first, and earlier calls and results written out."""
    plain = [_plain(message) for message in messages]
    if not tools:
        return plain
    declared = "\n".join(json.dumps(tool.declared, ensure_ascii=False) for tool in tools)
    lesson = _LESSON.format(tools=declared)
    if plain and plain[0]["role"] == "system":
        first = {"role": "system", "content": f"{plain[0]['content']}\n\n{lesson}"}
        return [first, *plain[1:]]
    return [{"role": "system", "content": lesson}, *plain]


def _plain(message: Message) -> Message:
    content = message["content"]
    if message["role"] == "tool":
        return {"role": "user", "content": f"<tool_response>\n{content}\n</tool_response>"}
    calls = [_written(call["function"]) for call in message.get("tool_calls") or ()]
    return {"role": message["role"], "content": "\n".join(filter(None, [content, *calls]))}


def _written(function: Mapping[str, Any]) -> str:
    call = {"name": function["name"], "arguments": function["arguments"]}
    return f"{OPEN}\n{json.dumps(call, ensure_ascii=False)}\n{CLOSE}"
