"""Where a chat template runs: somebody else's program, which came with the weights.

No attribute of any Python object can be reached and nothing can be changed. Time and memory are
bounded: every turn of a loop and every call looks at the clock, because neither has to produce any
output, and everything an expression makes is counted, because a template can keep it. What could
fill the memory in one operation is refused before it runs; what no chat template needs is not
there at all.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any

from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.filters import do_format, do_indent, do_join, do_replace, do_round, do_sum
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from engine.text.bounds import (
    Refusal,
    bounded_text,
    check_clock,
    check_format,
    check_join,
    check_length,
    check_method,
    check_product,
    check_replace,
    measure,
    spend,
)

MAX_SOURCE = 256 * 1024

UNNEEDED_FILTERS = (
    "batch", "center", "filesizeformat", "pprint", "slice", "urlize", "wordwrap", "xmlattr",
)  # fmt: skip


def _timed(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        check_clock()
        yield item


def _joined(parts: list[Any]) -> str:
    return _concat([bounded_text(part) for part in parts])


def _concat(parts: Iterable[str]) -> str:
    texts = list(parts)
    check_length(sum(map(len, texts)))
    text: str = spend("".join(texts))
    return text


class _Watch(NodeTransformer):
    """Puts `_timed` around what loops go over, and `_joined` in place of `~`."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, "_timed", [], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(parts, "_joined", [], [], None, None, lineno=node.lineno)


class _Generation(Extension):
    """`{% generation %}` marks what training looks at; here its content simply stands."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Bounded(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "+", "%"})
    concat = staticmethod(_concat)

    def call(self, context: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
        check_clock()
        method = getattr(callee, "__wrapped__", callee)
        owner = getattr(method, "__self__", None)
        if isinstance(owner, str | bytes | int | float):
            check_method(owner, getattr(method, "__name__", ""), [*args, *kwargs.values()])
        return spend(super().call(context, callee, *args, **kwargs))

    def getitem(self, obj: Any, argument: Any) -> Any:
        return spend(super().getitem(obj, argument))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "+" and hasattr(left, "__len__") and hasattr(right, "__len__"):
            check_length(len(left) + len(right))
        elif operator == "%" and isinstance(left, str | bytes):
            check_format(left, [right])
        elif operator in ("*", "**"):
            check_product(operator, left, right)
        return spend(super().call_binop(context, operator, left, right))


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Unlike Jinja's own filter, no HTML escapes: models are trained on plain JSON."""
    measure(value)
    if indent is not None and not 0 <= indent <= 16:
        raise Refusal("It indents too far.")
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _indent(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    wide = width if isinstance(width, int) else len(width)
    check_length(len(text) + (text.count("\n") + 1) * wide)
    return do_indent(text, width, first, blank)


def _round(value: float, precision: int = 0, method: Any = "common") -> float:
    if abs(precision) > 32:
        raise Refusal("It rounds too finely.")
    return do_round(value, precision, method)


def _before(check: Callable[..., None], work: Callable[..., Any], skip: int = 0) -> Any:
    """`work` after `check`, which does not get the first `skip` arguments."""

    @wraps(work)
    def checked(*args: Any, **kwargs: Any) -> Any:
        check(*args[skip:], **kwargs)
        return work(*args, **kwargs)

    return checked


def _check_join_filter(items: Any, d: Any = "", attribute: Any = None) -> None:
    check_join(items, d)


def _check_format_filter(template: Any, *args: Any, **kwargs: Any) -> None:
    check_format(template, [*args, *kwargs.values()])


def _check_sum_filter(items: Any, attribute: Any = None, start: Any = 0) -> None:
    if not isinstance(start, int | float):
        raise Refusal("It adds up what is no number.")


def _counted(work: Callable[..., Any]) -> Any:
    """A filter whose result is counted."""

    @wraps(work)
    def counted(*args: Any, **kwargs: Any) -> Any:
        return spend(work(*args, **kwargs))

    return counted


def _raise_exception(message: str) -> None:
    raise Refusal(message)


def make_environment() -> ImmutableSandboxedEnvironment:
    """An environment with the conventions of published chat templates."""
    environment = _Bounded(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", _Generation],
        finalize=_shown,
    )
    filters = environment.filters | {
        "tojson": _to_json,
        "string": bounded_text,
        "indent": _indent,
        "round": _round,
        "replace": _before(check_replace, do_replace, skip=1),
        "join": _before(_check_join_filter, do_join, skip=1),
        "format": _before(_check_format_filter, do_format),
        "sum": _before(_check_sum_filter, do_sum, skip=1),
    }
    for name in UNNEEDED_FILTERS:
        del filters[name]
    environment.filters = {name: _counted(work) for name, work in filters.items()}
    environment.filters |= {"_timed": _timed, "_joined": _joined}
    del environment.globals["lipsum"]
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = time.strftime
    return environment


def watched(environment: ImmutableSandboxedEnvironment, source: str) -> nodes.Template:
    """The template's tree, with its loops and concatenations under watch."""
    tree: nodes.Template = _Watch().visit(environment.parse(source))
    return tree


def _shown(value: Any) -> Any:
    """What an expression's value is before it is written out."""
    if isinstance(value, list | tuple | set | Mapping):
        measure(value)
    return value
