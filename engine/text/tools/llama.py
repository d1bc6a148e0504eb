"""Llama 3: the answer is the call, `{"name": …, "parameters": {…}}`, several with `;` between."""

from collections.abc import Sequence

from engine.text.tools.json_calls import JsonCallParser
from engine.text.tools.parser import CallParser
from engine.text.tools.style import Function, Spell, ToolStyle, call_schema, json_rule, rules_of

TAG = "<|python_tag|>"


class LlamaParser(JsonCallParser):
    """A call is one only where the answer begins, or behind `<|python_tag|>`."""

    openers = (TAG,)

    def __init__(self) -> None:
        super().__init__()
        self._state = self._start

    def _start(self) -> bool:
        text = self._buffer.lstrip()
        if not text or (text != TAG and TAG.startswith(text)):
            return False
        self._state = self._head if text[0] == "{" else self._content
        return True

    def _head(self) -> bool:
        tagged = self._buffer.startswith(TAG)
        begun = self._read_object(len(TAG) if tagged else 0)
        return self._refuse() if begun is False else bool(begun)

    def _after(self) -> bool:
        found = self._pass(";")
        if found is None:
            return False
        self._state = self._start if found else self._content
        return True


class Llama(ToolStyle):
    name = "llama"
    signs = (TAG, "Environment: ipython")
    markers = (TAG,)
    ends = ("<|eom_id|>",)
    marked = False

    def parser(self) -> CallParser:
        return LlamaParser()

    def rules(self, functions: Sequence[Function], spell: Spell, *, many: bool) -> str:
        more = ' (";" call)*' if many else ""
        bodies = [json_rule(call_schema(function, "parameters")) for function in functions]
        return f"calls: call{more}\n{rules_of(bodies)}"
