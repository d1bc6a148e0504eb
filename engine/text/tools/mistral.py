"""Mistral: `[TOOL_CALLS]` before a list of objects, or since 2025 `[TOOL_CALLS]name[ARGS]{…}`."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from string import ascii_letters, digits

from engine.text.tools.json_calls import JsonCallParser
from engine.text.tools.parser import CallParser
from engine.text.tools.style import Function, Spell, ToolStyle, call_schema, json_rule, rules_of

OPEN, ARGS, ID = "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"
MAX_NAME = 256
_ALPHABET = ascii_letters + digits
_NAMED = re.compile(r"\s*([\w.-]+)\s*(?:\[CALL_ID\]\w*\s*)?(?:\[ARGS\])?\s*(?=\{)")


class MistralParser(JsonCallParser):
    openers = (OPEN,)

    def __init__(self) -> None:
        super().__init__()
        self._listed = False

    def _head(self) -> bool:
        text = self._buffer[len(OPEN) :].lstrip()
        if not text:
            return False
        self._listed = text[0] == "["
        if not self._listed:
            return self._named(text)
        begun = self._read_object(self._buffer.index("[", len(OPEN)) + 1)
        return self._refuse() if begun is False else bool(begun)

    def _named(self, text: str) -> bool:
        match = _NAMED.match(self._buffer, len(OPEN))
        if match:
            return self._begin(match[1], match.end())
        return self._refuse() if "{" in text or len(text) > MAX_NAME else False

    def _next(self) -> bool:
        """Another object of the list."""
        begun = self._read_object(0)
        if begun is False:
            self._state = self._content
        return begun is not None

    def _tail(self) -> bool:
        if self._listed:
            return super()._tail()
        self._state = self._content
        return True

    def _after(self) -> bool:
        found = self._pass(",", "]")
        if found is None:
            return False
        another = found and self._passed == ","
        self._state = self._next if another else self._content
        return True


class Mistral(ToolStyle):
    """Its templates insist on ids of nine letters and digits."""

    name = "mistral"
    signs = (OPEN,)
    markers = (OPEN, ARGS, ID)

    def __init__(self, named: bool = False) -> None:
        """`named`: the newer way of writing."""
        self._named = named

    def parser(self) -> CallParser:
        return MistralParser()

    def call_id(self, source: bytes) -> str:
        digest = blake2b(source, digest_size=9).digest()
        return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest)

    def rules(self, functions: Sequence[Function], spell: Spell, *, many: bool) -> str:
        if self._named:
            more = " call*" if many else ""
            bodies = [
                f'{spell(OPEN)} "{function.name}" {spell(ARGS)} {json_rule(function.parameters)}'
                for function in functions
            ]
            return f"calls: call{more}\n{rules_of(bodies)}"
        more = ' (", " call)*' if many else ""
        bodies = [json_rule(call_schema(function, "arguments")) for function in functions]
        return f'calls: {spell(OPEN)} "[" call{more} "]"\n{rules_of(bodies)}'
