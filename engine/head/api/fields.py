"""Reads one JSON object field by field; every complaint names the field, in OpenAI's terms."""

from collections.abc import Mapping
from typing import Any

import msgspec

from engine.errors import RequestError

MAX_INTEGER = 2**31 - 1
"""What every number of tokens fits in; a larger one could not even be sent to a rank."""


class Fields:
    """Fields nobody asks for are ignored, as other servers do; null means absent."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._body = body

    @classmethod
    def parse(cls, payload: bytes) -> "Fields":
        try:
            body = msgspec.json.decode(payload)
        except msgspec.DecodeError as error:
            raise RequestError(f"The request body is not valid JSON: {error}.") from error
        except UnicodeDecodeError as error:
            raise RequestError("The request body is not valid UTF-8.") from error
        except RecursionError as error:
            raise RequestError("The request body is nested too deeply.") from error
        if not isinstance(body, dict):
            raise RequestError("The request body must be a JSON object.")
        return cls(body)

    def raw(self, name: str) -> Any:
        return self._body.get(name)

    def object(self, name: str) -> dict[str, Any] | None:
        """None when the field is absent."""
        value = self._body.get(name)
        if value is not None and not isinstance(value, dict):
            raise RequestError(f"{name} must be an object.", param=name)
        return value

    def number(
        self, name: str, default: float, low: float, high: float, *, above: bool = False
    ) -> float:
        """`above`: the lowest value itself is out of range."""
        value = self._body.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RequestError(f"{name} must be a number.", param=name)
        if not low <= value <= high:
            raise RequestError(f"{name} must be between {low:g} and {high:g}.", param=name)
        if above and value == low:
            raise RequestError(f"{name} must be greater than {low:g}.", param=name)
        return float(value)

    def integer(self, name: str, low: int, high: int = MAX_INTEGER) -> int | None:
        """None when the field is absent."""
        value = self._body.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise RequestError(f"{name} must be an integer.", param=name)
        if not low <= value <= high:
            raise RequestError(f"{name} must be between {low} and {high}.", param=name)
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._body.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise RequestError(f"{name} must be true or false.", param=name)
        return value

    def text(self, name: str) -> str:
        value = self._body.get(name)
        if not isinstance(value, str) or not value:
            raise RequestError(f"{name} must be a non-empty string.", param=name)
        return value

    def refuse_unless(self, name: str, accepted: tuple[Any, ...]) -> None:
        """Raise for a feature that is asked for and does not exist here."""
        value = self._body.get(name)
        # Python counts True as 1, JSON does not.
        alike = (item for item in accepted if isinstance(item, bool) == isinstance(value, bool))
        if value is not None and value not in alike:
            raise RequestError(
                f"{name} is not supported by this engine.",
                param=name,
                code="unsupported_parameter",
            )
