"""JSON schemas of growing difficulty, from a seed. Their answers are short or end by chance."""

import random
import string
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]

WORDS = [
    "name",
    "größe",
    "名前",
    "a b",
    'quo"te',
    "back\\slash",
    "x",
    "naïve",
    "🙂",
    "$id",
    "new\nline",
]
PATTERNS = [
    r"^[a-f0-9]{8}$",
    r"^[0-9]{3}-[0-9]{4}$",
    r"^(red|green|blue)-[A-Z]{2}$",
    r"^[^\s\"\\]{1,6}$",
    r"^(?:v[0-9]{1,2}\.){2}[0-9]{1,2}(-rc[0-9])?$",
    r"^[äöüß漢字]{1,4}$",
]
FORMATS = ["date", "ipv4", "ipv6", "uuid", "email"]


def schemas(count: int, seed: int = 0) -> list[Schema]:
    """The first are single values; the last nest, recurse, choose and share definitions."""
    return [
        _Maker(random.Random(seed * count + index), 10 * index // count).schema()
        for index in range(count)
    ]


class _Maker:
    def __init__(self, dice: random.Random, level: int) -> None:
        """`level` goes from 0 to 9."""
        self.dice = dice
        self.level = level

    def schema(self) -> Schema:
        depth = (self.level + 2) // 3
        if self.level >= 8:
            return self._shared(depth)
        if self.level >= 6 and self.dice.random() < 0.4:
            return self._recursive()
        return self.object(depth) if depth else self.value(0)

    def value(self, depth: int) -> Schema:
        kinds: list[Callable[[], Schema]] = [
            self._integer,
            self._text,
            self._enum,
            lambda: {"type": "boolean"},
            lambda: {"type": "null"},
            lambda: {"const": self.dice.choice([1, -2.5, "c", None, True, [1, "x"], {"k": {}}])},
        ]
        if self.level >= 2:
            kinds += [self._number, self._pattern, self._format, self._long_enum, self._types]
        if depth > 0:
            nested = [self.object, self._array, self._tuple, self._any_of]
            if self.level >= 5:
                nested += [self._record, self._all_of]
            kinds += [lambda make=make: make(depth - 1) for make in nested] * 2
        return self.dice.choice(kinds)()

    def object(self, depth: int) -> Schema:
        names = self.dice.sample(WORDS, self.dice.randint(1, 4))
        required = [name for name in names if self.dice.random() < 0.6]
        return {
            "type": "object",
            "properties": {name: self.value(depth) for name in names},
            "required": required,
            "additionalProperties": False,
        }

    def _integer(self) -> Schema:
        low = self.dice.randint(-2000, 1000)
        high = low + self.dice.choice([0, 1, 9, 500, 10**6])
        edges = (
            ("minimum", "maximum")
            if self.dice.random() < 0.6
            else (
                "exclusiveMinimum",
                "exclusiveMaximum",
            )
        )
        bounded = {"type": "integer", edges[0]: low - 1, edges[1]: high + 1}
        return bounded if self.dice.random() < 0.8 else {"type": "integer", "multipleOf": 5}

    def _number(self) -> Schema:
        low = round(self.dice.uniform(-50, 50), 2)
        return {"type": "number", "minimum": low, "maximum": low + self.dice.choice([0.5, 3, 1e4])}

    def _text(self) -> Schema:
        least = self.dice.randint(0, 4)
        return {"type": "string", "minLength": least, "maxLength": least + self.dice.randint(0, 8)}

    def _enum(self) -> Schema:
        options: list[Any] = [*WORDS, 0, 7, -1.5, True, None, ["a"], {"b": 1}]
        return {"enum": self.dice.sample(options, self.dice.randint(1, 6))}

    def _long_enum(self) -> Schema:
        letters = string.ascii_letters
        return {"enum": ["".join(self.dice.choices(letters, k=9)) for _ in range(400)]}

    def _types(self) -> Schema:
        return {"type": ["boolean", "null", "string"], "maxLength": 4}

    def _pattern(self) -> Schema:
        return {"type": "string", "pattern": self.dice.choice(PATTERNS)}

    def _format(self) -> Schema:
        return {"type": "string", "format": self.dice.choice(FORMATS)}

    def _array(self, depth: int) -> Schema:
        least = self.dice.randint(0, 2)
        most = least + self.dice.randint(0, 2)
        return {"type": "array", "items": self.value(depth), "minItems": least, "maxItems": most}

    def _tuple(self, depth: int) -> Schema:
        parts = [self.value(depth) for _ in range(self.dice.randint(1, 3))]
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}

    def _any_of(self, depth: int) -> Schema:
        return {"anyOf": [self.value(depth) for _ in range(self.dice.randint(2, 3))]}

    def _all_of(self, depth: int) -> Schema:
        left, right = self.object(depth), {"b1": self.value(depth)}
        left["properties"].pop("x", None)
        left["required"] = [name for name in left["required"] if name != "x"]
        del left["additionalProperties"]
        extra = {"type": "object", "properties": right, "required": ["b1"]}
        return {"allOf": [left, extra], "additionalProperties": False} | {
            "type": "object",
            "properties": dict.fromkeys([*left["properties"], "b1"], True),
        }

    def _record(self, depth: int) -> Schema:
        """A map whose keys are open; short ones, or they would seldom end."""
        return {
            "type": "object",
            "patternProperties": {r"^k[0-9a-z]{1,3}$": self.value(depth)},
            "additionalProperties": False,
            "maxProperties": 2,
        }

    def _recursive(self) -> Schema:
        node: Schema = {
            "type": "object",
            "properties": {
                "value": self.value(0),
                "next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]},
                "first": {"type": "array", "items": {"$ref": "#"}, "maxItems": 1},
            },
            "required": ["value"],
            "additionalProperties": False,
        }
        if self.dice.random() < 0.5:
            del node["properties"]["first"]
        return node

    def _shared(self, depth: int) -> Schema:
        """Definitions used several times, one of them leading back to itself."""
        tree = {
            "type": "object",
            "properties": {"leaf": {"$ref": "#/$defs/leaf"}, "down": {"$ref": "#/$defs/down"}},
            "required": ["leaf"],
            "additionalProperties": False,
        }
        down = {"anyOf": [{"$ref": "#/$defs/tree"}, {"$ref": "#/$defs/leaf"}, {"const": "stop"}]}
        root = self.object(depth)
        root["properties"] |= {"tree": {"$ref": "#/$defs/tree"}, "leaf": {"$ref": "#/$defs/leaf"}}
        root["required"].append("tree")
        return root | {"$defs": {"leaf": self.value(0), "tree": tree, "down": down}}
