"""A model's chat template, run in a sandbox.

The template comes with the weights and is therefore somebody else's program: no attribute of any
Python object can be reached, nothing can be changed, and its output and running time are bounded.
Every turn of a loop and every call looks at the clock, because neither has to produce any output.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from engine.errors import CheckpointError, RequestError
from engine.errors import gettext_noop as _

MAX_SOURCE = 256 * 1024
MAX_OUTPUT = 4 * 1024 * 1024
MAX_SECONDS = 2.0
MAX_REPEAT = 100_000

Message = Mapping[str, str]

_deadline: ContextVar[float] = ContextVar("deadline", default=float("inf"))


_FAULTS = (
    TemplateError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    MemoryError,
)
"""What somebody else's program can end with."""


class _Refusal(TemplateError):
    """The template itself called `raise_exception`."""


def _check_clock() -> None:
    if time.monotonic() > _deadline.get():
        raise _Refusal("It takes too long.")


def _check_length(length: int) -> None:
    if length > MAX_OUTPUT:
        raise _Refusal("It produces too much text.")


def _timed(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        _check_clock()
        yield item


def _joined(parts: list[Any]) -> str:
    texts = [str(part) for part in parts]
    _check_length(sum(map(len, texts)))
    return "".join(texts)


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


class _Bounded(ImmutableSandboxedEnvironment):
    """Arithmetic that could fill the memory in one operation is checked first."""

    intercepted_binops = frozenset({"*", "**", "+"})

    def call(self, context: Any, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
        _check_clock()
        return super().call(context, callee, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "+" and hasattr(left, "__len__") and hasattr(right, "__len__"):
            _check_length(len(left) + len(right))
            return super().call_binop(context, operator, left, right)
        sizes = [len(side) for side in (left, right) if hasattr(side, "__len__")]
        counts = [side for side in (left, right) if isinstance(side, int)]
        too_long = sizes and counts and sizes[0] * counts[0] > MAX_REPEAT
        if too_long or (operator == "**" and any(abs(count) > 64 for count in counts)):
            raise _Refusal("It computes something far too large.")
        return super().call_binop(context, operator, left, right)


def _raise_exception(message: str) -> None:
    raise _Refusal(message)


def _to_json(value: Any, indent: int | None = None) -> str:
    """Unlike Jinja's own filter, no HTML escapes: models are trained on plain JSON."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _environment() -> _Bounded:
    environment = _Bounded(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters |= {"tojson": _to_json, "_timed": _timed, "_joined": _joined}
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = time.strftime
    return environment


class ChatTemplate:
    def __init__(self, source: str, *, bos_token: str = "", eos_token: str = "") -> None:
        """Raises CheckpointError when the template cannot be compiled."""
        if len(source) > MAX_SOURCE:
            raise CheckpointError(
                _("The chat template is longer than %(limit)s characters."),
                limit=MAX_SOURCE,
            )
        try:
            environment = _environment()
            tree = _Watch().visit(environment.parse(source))
            self._template = environment.from_string(tree)
        except (TemplateError, RecursionError) as error:
            raise CheckpointError(
                _("The chat template cannot be read: %(error)s."), error=str(error)
            ) from error
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}

    def render(self, messages: Sequence[Message], *, add_generation_prompt: bool) -> str:
        """The prompt as text; raises RequestError when the template refuses the messages."""
        pieces: list[str] = []
        length = 0
        reset = _deadline.set(time.monotonic() + MAX_SECONDS)
        try:
            for piece in self._template.generate(
                messages=[dict(message) for message in messages],
                add_generation_prompt=add_generation_prompt,
                **self._tokens,
            ):
                pieces.append(piece)
                length += len(piece)
                _check_length(length)
                _check_clock()
        except _FAULTS as error:
            raise RequestError(
                f"The model's chat template refuses these messages: {error}", param="messages"
            ) from error
        finally:
            _deadline.reset(reset)
        return "".join(pieces)
