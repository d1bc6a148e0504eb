"""How the playground asks for an answer: what its form sends, as fields of a request."""

import json
from typing import Any, Literal

import msgspec
from django.utils.translation import gettext as _

from dashboard.errors import TandemError

MAX_SHAPE = 50_000
"""Characters of a schema or an expression."""


class Parameters(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """What the page offers; the engine judges the values."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop_text: str = ""
    answer_form: Literal["", "json_object", "json_schema", "regex"] = ""
    answer_shape: str = ""
    """The schema or the expression that `answer_form` asks for."""

    def fields(self) -> dict[str, Any]:
        """Fields of an API request. Raises TandemError for a shape that cannot be read."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        for name in ("stop_text", "answer_form", "answer_shape"):
            fields.pop(name, None)
        if self.stop_text:
            fields["stop"] = [self.stop_text]
        return fields | self._form()

    def _form(self) -> dict[str, Any]:
        if len(self.answer_shape) > MAX_SHAPE:
            raise TandemError(
                _("A schema or expression may have at most %s characters.") % MAX_SHAPE
            )
        match self.answer_form:
            case "json_object":
                return {"response_format": {"type": "json_object"}}
            case "json_schema":
                schema = {"name": "answer", "schema": self._schema()}
                return {"response_format": {"type": "json_schema", "json_schema": schema}}
            case "regex" if self.answer_shape:
                return {"structured_outputs": {"regex": self.answer_shape}}
            case "regex":
                raise TandemError(_("Write the regular expression that the answer has to match."))
        return {}

    def _schema(self) -> dict[str, Any]:
        try:
            schema = json.loads(self.answer_shape)
        except (ValueError, RecursionError) as error:
            raise TandemError(_("The schema is not valid JSON: %s") % error) from error
        if not isinstance(schema, dict):
            raise TandemError(_("A JSON schema is an object: it begins with { and ends with }."))
        return schema
