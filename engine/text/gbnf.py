"""From llama.cpp's grammar notation to Lark's, as llguidance reads it.

GBNF (https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md): rules `name ::= …`,
starting at `root`. Rules that lead to no recursion become one regular expression each (names in
capitals), so that their alternatives are weighed together and not one piece at a time.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<skip>\s+|\#[^\n]*)
      |(?P<define>::=)
      |(?P<name>[A-Za-z0-9_-]+)
      |"(?P<text>(?:[^"\\\n]|\\.)*)"
      |\[(?P<choice>(?:[^\]\\]|\\.)*)\]
      |\{\s*(?P<least>\d{0,6})\s*(?P<range>,?)\s*(?P<most>\d{0,6})\s*\}
      |(?P<other>[()|*+?.])""",
    re.VERBOSE | re.DOTALL,
)
_CHARACTER = re.compile(
    r"\\x(?P<x>[0-9a-fA-F]{2})|\\u(?P<u>[0-9a-fA-F]{4})|\\U(?P<U>[0-9a-fA-F]{8})"
    r"|\\(?P<escaped>.)|(?P<plain>.)",
    re.DOTALL,
)
_REFERENCE = re.compile("\0([^\0]+)\0")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class GbnfError(ValueError):
    """Text that is no GBNF; says where."""


@dataclass
class _Rule:
    parts: list[str] = field(default_factory=list)
    """Lark's notation, but for references: the rule's name between zero characters."""
    references: set[str] = field(default_factory=set)


def gbnf_to_lark(text: str) -> str:
    """Raises GbnfError where a piece is not GBNF, or names a rule that does not exist."""
    rules = _rules(list(_pieces(text)))
    if "root" not in rules:
        raise GbnfError("there is no rule `root`")
    for name, rule in rules.items():
        unknown = sorted(rule.references - rules.keys())
        if unknown:
            raise GbnfError(f"rule `{name}` names `{unknown[0]}`, which does not exist")
    flat = _flat(rules)
    names = {name: f"{'R' if name in flat else 'r'}{place}" for place, name in enumerate(rules)}
    lines = [f"start: {names['root']}"]
    for name, rule in rules.items():
        body = _REFERENCE.sub(lambda found: names[found[1]], " ".join(rule.parts))
        lines.append(f"{names[name]}: {body}")
    return "\n".join(lines) + "\n"


def _pieces(text: str) -> Iterator[re.Match[str]]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            line = text.count("\n", 0, place) + 1
            raise GbnfError(f"line {line}: cannot read {text[place : place + 20]!r}")
        if found.lastgroup != "skip":
            yield found
        place = found.end()


def _rules(pieces: list[re.Match[str]]) -> dict[str, _Rule]:
    rules: dict[str, _Rule] = {}
    rule: _Rule | None = None
    for piece, following in zip(pieces, [*pieces[1:], None], strict=False):
        name = piece["name"]
        if name is not None and following is not None and following["define"]:
            if name in rules:
                raise GbnfError(f"there are two rules `{name}`")
            rule = rules[name] = _Rule()
        elif piece["define"]:
            if rule is None or rule.parts:
                raise GbnfError("`::=` without a name before it")
        elif rule is None:
            raise GbnfError(f"{piece[0][:20]!r} stands before the first rule")
        elif name is not None:
            rule.parts.append(f"\0{name}\0")
            rule.references.add(name)
        else:
            _append(rule.parts, piece)
    return rules


def _append(parts: list[str], piece: re.Match[str]) -> None:
    if piece["text"] is not None:
        parts.append(json.dumps("".join(_characters(piece["text"])), ensure_ascii=False))
    elif piece["choice"] is not None:
        parts.append(_character_class(piece["choice"]))
    elif piece["other"] == ".":
        parts.append(r"/[\x{0}-\x{10FFFF}]/")
    elif piece["other"] in ("*", "+", "?") or piece["least"] is not None:
        if not parts or parts[-1] in ("(", "|"):
            raise GbnfError(f"{piece[0]!r} has nothing to repeat")
        parts[-1] += piece["other"] or _repetition(piece)
    else:
        parts.append(piece["other"])


def _repetition(piece: re.Match[str]) -> str:
    least = piece["least"] or "0"
    if not piece["range"]:
        return f"{{{least},{least}}}"
    return f"{{{least},{piece['most']}}}"


def _character_class(text: str) -> str:
    negated = text.startswith("^")
    characters = list(_CHARACTER.finditer(text[1:] if negated else text))
    ranges: list[str] = []
    place = 0
    while place < len(characters):
        ranges.append(_code(characters[place]))
        if place + 2 < len(characters) and characters[place + 1][0] == "-":
            ranges[-1] += "-" + _code(characters[place + 2])
            place += 2
        place += 1
    return f"/[{'^' if negated else ''}{''.join(ranges)}]/"


def _code(character: re.Match[str]) -> str:
    return rf"\x{{{ord(_character(character)):X}}}"


def _characters(text: str) -> Iterator[str]:
    return map(_character, _CHARACTER.finditer(text))


def _character(found: re.Match[str]) -> str:
    code = found["x"] or found["u"] or found["U"]
    if code is None:
        escaped = found["escaped"]
        return found["plain"] if escaped is None else _ESCAPES.get(escaped, escaped)
    number = int(code, 16)
    if number > 0x10FFFF or 0xD800 <= number < 0xE000:
        raise GbnfError(f"{found[0]!r} is not a character")
    return chr(number)


def _flat(rules: dict[str, _Rule]) -> set[str]:
    """Rules from which no recursion is reached."""
    users: dict[str, list[str]] = {name: [] for name in rules}
    open_references = {name: len(rule.references) for name, rule in rules.items()}
    for name, rule in rules.items():
        for reference in rule.references:
            users[reference].append(name)
    ready = [name for name, count in open_references.items() if count == 0]
    flat: set[str] = set()
    while ready:
        flat.add(name := ready.pop())
        for user in users[name]:
            open_references[user] -= 1
            if open_references[user] == 0:
                ready.append(user)
    return flat
