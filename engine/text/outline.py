"""The form of a whole answer: reasoning first, then tool calls or an answer of a given form."""

import json
from collections.abc import Sequence

import msgspec

from engine.text.grammar import compile_outline
from engine.text.reasoning import Tags
from engine.text.tokenizer import TextTokenizer
from engine.text.tools import Function, ToolStyle

FREE = "free: /(?s:.*)/"
GAP = r"gap: /[ \n]{0,4}/"


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    """The tool calls an answer may or must consist of."""

    style: ToolStyle
    functions: Sequence[Function]
    many: bool
    forced: bool
    """Otherwise the answer may be something else."""


class Outliner:
    """Writes grammars with one model's own tokens."""

    def __init__(self, tokenizer: TextTokenizer, tags: Tags | None) -> None:
        self._tokenizer = tokenizer
        self._tags = tags

    def compile(
        self, *, answer: str = "", calls: Calls | None = None, thinking: bool, silent: bool
    ) -> str:
        """The serialised grammar; `answer` alone where nothing else is to be said.

        `thinking`: the answer begins inside a block of reasoning; `silent`: it has no such block.
        Raises RequestError for schemas that cannot be used.
        """
        lead, thoughts = self._lead(thinking=thinking, silent=silent)
        if calls is None and not (answer and lead):
            return answer
        rules = [f"start: {lead}body", *self._body(answer, calls), *thoughts]
        param = "tools" if calls else "response_format"
        return compile_outline("\n".join(rules), answer, param=param)

    def _lead(self, *, thinking: bool, silent: bool) -> tuple[str, list[str]]:
        """What stands before the answer proper, and its rules."""
        if silent or self._tags is None:
            return "", []
        close = self._spell(self._tags.close)
        if self._tags.close in self._tokenizer.control:
            rules = [f"thought: reasons {close}", "reasons: /(?s:.*)/", GAP]
        else:
            rules = [f"thought[lazy]: /(?s:.*)/ {close}", GAP]
        if thinking:
            return "thought gap ", rules
        block = f"block: {self._spell(self._tags.open)} thought"
        return "(block gap)? ", [*rules, block]

    def _body(self, answer: str, calls: Calls | None) -> list[str]:
        if calls is None:
            return ["body: @answer"]
        if calls.forced or answer:
            other = "" if calls.forced else " | @answer"
            rules = calls.style.rules(calls.functions, self._spell, many=calls.many)
            return [f"body: calls{other}", rules]
        return self._amid_text(calls)

    def _amid_text(self, calls: Calls) -> list[str]:
        """Whatever the model likes to say, but once it begins a call, a well-formed one."""
        opener = calls.style.markers[0]
        special = opener in self._tokenizer.control
        lead = self._spell(opener) if special else "opening"
        rules = calls.style.rules(
            calls.functions,
            lambda marker: lead if marker == opener else self._spell(marker),
            many=calls.many,
        )
        if special:
            return ["body: free calls | free", FREE, rules]
        opening = f"opening[lazy]: FREE {self._spell(opener)}"
        return ["body: calls | rest", "rest: FREE", "FREE: /(?s:.*)/", opening, rules]

    def _spell(self, marker: str) -> str:
        token = self._tokenizer.control.get(marker)
        return json.dumps(marker, ensure_ascii=False) if token is None else f"<[{token}]>"


def strict_calls(calls: Calls) -> bool:
    """Whether calls that the model is free to make can be held to their schemas: the style has to
    mark where a call begins."""
    return calls.style.marked and any(function.strict for function in calls.functions)
