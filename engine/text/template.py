"""A model's chat template. It comes with the weights, so it runs in `engine.text.sandbox`."""

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import TemplateError, meta

from engine.errors import CheckpointError, RequestError
from engine.errors import gettext_noop as _
from engine.text.bounds import FAULTS, check_clock, check_length, metered
from engine.text.sandbox import MAX_SOURCE, make_environment, watched

Message = Mapping[str, Any]


class ChatTemplate:
    def __init__(self, source: str, *, bos_token: str = "", eos_token: str = "") -> None:
        """Raises CheckpointError when the template cannot be compiled."""
        if len(source) > MAX_SOURCE:
            raise CheckpointError(
                _("The chat template is longer than %(limit)s characters."),
                limit=MAX_SOURCE,
            )
        try:
            environment = make_environment()
            self.variables = meta.find_undeclared_variables(environment.parse(source))
            """Names the template reads."""
            self._template = environment.from_string(watched(environment, source))
        except (TemplateError, RecursionError) as error:
            raise CheckpointError(
                _("The chat template cannot be read: %(error)s."), error=str(error)
            ) from error
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}

    def render(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool,
        tools: Sequence[Any] | None = None,
        documents: Sequence[Any] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> str:
        """The prompt as text; raises RequestError when the template refuses the messages.

        `extra` are variables of this model's own, e.g. `enable_thinking`; they replace none of the
        others.
        """
        variables = {
            **(extra or {}),
            **self._tokens,
            "messages": [dict(message) for message in messages],
            "add_generation_prompt": add_generation_prompt,
            "tools": tools,
            "documents": documents,
        }
        pieces: list[str] = []
        length = 0
        try:
            with metered():
                for piece in self._template.generate(variables):
                    pieces.append(piece)
                    length += len(piece)
                    check_length(length)
                    check_clock()
        except FAULTS as error:
            raise RequestError(
                f"The model's chat template refuses these messages: {error}", param="messages"
            ) from error
        return "".join(pieces)
