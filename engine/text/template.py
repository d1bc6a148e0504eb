"""A model's chat template, run in a sandbox.

The template comes with the weights and is therefore somebody else's program: no attribute of any
Python object can be reached, nothing can be changed, and its output and running time are bounded.
"""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.errors import CheckpointError, RequestError
from engine.errors import gettext_noop as _

MAX_SOURCE = 256 * 1024
MAX_OUTPUT = 4 * 1024 * 1024
MAX_SECONDS = 2.0
MAX_REPEAT = 100_000

Message = Mapping[str, str]


class _Refusal(TemplateError):
    """The template itself called `raise_exception`."""


class _Bounded(ImmutableSandboxedEnvironment):
    """Arithmetic that could fill the memory in one operation is checked first."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
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
    environment.filters["tojson"] = _to_json
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
            self._template = _environment().from_string(source)
        except TemplateError as error:
            raise CheckpointError(
                _("The chat template cannot be read: %(error)s."), error=str(error)
            ) from error
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}

    def render(self, messages: Sequence[Message], *, add_generation_prompt: bool) -> str:
        """The prompt as text; raises RequestError when the template refuses the messages."""
        pieces: list[str] = []
        length, deadline = 0, time.monotonic() + MAX_SECONDS
        try:
            for piece in self._template.generate(
                messages=[dict(message) for message in messages],
                add_generation_prompt=add_generation_prompt,
                **self._tokens,
            ):
                pieces.append(piece)
                length += len(piece)
                if length > MAX_OUTPUT or time.monotonic() > deadline:
                    raise _Refusal("It produces too much text or takes too long.")
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise RequestError(
                f"The model's chat template refuses these messages: {error}", param="messages"
            ) from error
        return "".join(pieces)
