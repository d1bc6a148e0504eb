"""Bounds of a chat template's run: its time, and the size of everything it makes."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from jinja2 import TemplateError

MAX_OUTPUT = 4 * 1024 * 1024
"""Characters of one text."""
MAX_WORK = 64 * 1024 * 1024
"""Characters and list entries of all that a rendering makes."""
MAX_SECONDS = 2.0
MAX_REPEAT = 100_000
MAX_BITS = 4096

FAULTS = (
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

_LONG_NUMBER = re.compile(r"\d{5,}|\*")


class Refusal(TemplateError):
    """The template called `raise_exception`, or went beyond a bound."""


class _Meter:
    def __init__(self) -> None:
        self.deadline = time.monotonic() + MAX_SECONDS
        self.left = MAX_WORK


_meter: ContextVar[_Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metered() -> Iterator[None]:
    """One rendering's time and memory."""
    reset = _meter.set(_Meter())
    try:
        yield
    finally:
        _meter.reset(reset)


def check_clock() -> None:
    meter = _meter.get()
    if meter is not None and time.monotonic() > meter.deadline:
        raise Refusal("It takes too long.")


def check_length(length: int) -> None:
    if length > MAX_OUTPUT:
        raise Refusal("It produces too much text.")


def spend(made: Any) -> Any:
    """Count what was made."""
    meter = _meter.get()
    if meter is not None and isinstance(made, str | bytes | list | tuple):
        meter.left -= len(made)
        if meter.left < 0:
            raise Refusal("It produces too much text.")
    return made


def bounded_text(value: Any) -> str:
    """`str`, unless that would be too long: a small nest of lists can have an endless text."""
    measure(value)
    text = str(value)
    check_length(len(text))
    return text


def measure(value: Any) -> None:
    length, todo = 0, [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str | bytes):
            length += len(item)
        elif isinstance(item, Mapping):
            todo += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple | set | frozenset):
            todo += item
        length += 2
        check_length(length + len(todo))


def check_product(operator: str, left: Any, right: Any) -> None:
    sizes = [len(side) for side in (left, right) if hasattr(side, "__len__")]
    counts = [side for side in (left, right) if isinstance(side, int)]
    bits = [count.bit_length() for count in counts]
    too_long = sizes and counts and sizes[0] * counts[0] > MAX_REPEAT
    if operator == "*":
        too_big = len(counts) == 2 and sum(bits) > MAX_BITS
    else:
        too_big = len(counts) == 2 and bits[0] * counts[1] > MAX_BITS
    if too_long or too_big:
        raise Refusal("It computes something far too large.")


def check_method(owner: Any, name: str, given: list[Any]) -> None:
    """Before a method of a text or number makes something far longer than its owner."""
    if name == "translate" or any(isinstance(x, int) and x > MAX_REPEAT for x in given):
        raise Refusal("It computes something far too large.")
    if name in ("format", "format_map"):
        check_format(owner, given)
    elif name == "replace":
        check_replace(owner, *given[:2])
    elif name == "join" and given:
        check_join(given[0], owner)
    elif name == "expandtabs":
        check_length(len(owner) + owner.count("\t") * (given[0] if given else 8))


def check_format(template: Any, given: Iterable[Any]) -> None:
    if not isinstance(template, str) or _LONG_NUMBER.search(template):
        raise Refusal("It computes something far too large.")
    for value in given:
        measure(value)
        if isinstance(value, int) and value > MAX_REPEAT and "{:{" in template:
            raise Refusal("It computes something far too large.")


def check_replace(text: str, old: Any = "", new: Any = "", *_: Any) -> None:
    check_length(len(text) + text.count(str(old)) * len(str(new)))


def check_join(items: Any, separator: Any) -> None:
    measure(items)
    if hasattr(items, "__len__"):
        check_length(len(items) * len(str(separator)))
