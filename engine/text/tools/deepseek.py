"""DeepSeek V3 (a fenced block) and V3.1 (bare arguments)."""

import re
from collections.abc import Sequence

from engine.text.tools.parser import CallParser
from engine.text.tools.style import Function, Spell, ToolStyle, json_rule, rules_of

BEGIN, END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, CALL_END, SEPARATOR = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"
MAX_HEAD = 512
_HEAD = re.compile(
    rf"(?:{BEGIN})?\s*{CALL}\s*(?:function\s*{SEPARATOR}\s*([\w.-]+)\s*```json\s*"
    rf"|([\w.-]+)\s*{SEPARATOR}\s*)(?=\{{)"
)


class DeepSeekParser(CallParser):
    openers = (BEGIN, CALL)

    def _head(self) -> bool:
        match = _HEAD.match(self._buffer)
        if match:
            return self._begin(match[1] or match[2], match.end())
        return self._refuse() if "{" in self._buffer or len(self._buffer) > MAX_HEAD else False

    def _after(self) -> bool:
        found = self._pass("```", CALL_END, END)
        if found is None:
            return False
        if not found or self._passed == END:
            self._state = self._content
        return True


class DeepSeek(ToolStyle):
    name = "deepseek"
    signs = (BEGIN,)
    markers = (BEGIN, END, CALL, CALL_END, SEPARATOR)
    arguments_as_text = True

    def __init__(self, fenced: bool = True) -> None:
        """`fenced`: V3 and R1, which name the kind of tool and fence its arguments."""
        self._fenced = fenced

    def parser(self) -> CallParser:
        return DeepSeekParser()

    def rules(self, functions: Sequence[Function], spell: Spell, *, many: bool) -> str:
        between = ' "\\n"' if self._fenced else ""
        more = f" ({between} call)*" if many else ""
        bodies = [self._call(function, spell) for function in functions]
        return f"calls: {spell(BEGIN)} call{more} {spell(END)}\n{rules_of(bodies)}"

    def _call(self, function: Function, spell: Spell) -> str:
        arguments = json_rule(function.parameters)
        if self._fenced:
            head = f'"function" {spell(SEPARATOR)} "{function.name}\\n```json\\n"'
            return f'{spell(CALL)} {head} {arguments} "\\n```" {spell(CALL_END)}'
        return f'{spell(CALL)} "{function.name}" {spell(SEPARATOR)} {arguments} {spell(CALL_END)}'
