"""A request's body, read as one dialect declares it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from django.utils.translation import gettext as _

from dashboard.gateway.errors import ApiError

T = TypeVar("T")

PASSED = (
    "cache_salt",
    "chat_template_kwargs",
    "documents",
    "frequency_penalty",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "ignore_eos",
    "logit_bias",
    "min_p",
    "min_tokens",
    "presence_penalty",
    "priority",
    "repetition_penalty",
    "seed",
    "skip_special_tokens",
    "stop_token_ids",
    "structured_outputs",
    "temperature",
    "top_k",
    "top_p",
)
"""Fields that mean in every dialect what they mean in a chat; the engine judges them."""

_AT = re.compile(r"^(?P<what>.*) - at `\$\.?(?P<place>.*)`$", re.DOTALL)


def read_object(body: bytes) -> dict[str, Any]:
    """Raises ApiError for anything but a JSON object."""
    try:
        fields = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        text = _("The body is not JSON: %(error)s.") % {"error": str(error)}
        raise ApiError(text, status=400, code="invalid_json") from error
    except RecursionError as error:
        raise too_deep() from error
    if not isinstance(fields, dict):
        raise ApiError(_("The body must be a JSON object."), status=400, code="invalid_json")
    return fields


def read_as(kind: type[T], value: Any, place: str = "") -> T:
    """A declared structure; raises ApiError naming the field. `place`: where the value stands."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _mistake(str(error), place) from error
    except RecursionError as error:
        raise too_deep() from error


def write(chat: Mapping[str, Any]) -> bytes:
    """A chat request's body; raises ApiError for what JSON cannot say."""
    try:
        return msgspec.json.encode({k: v for k, v in chat.items() if v is not None})
    except RecursionError as error:
        raise too_deep() from error
    except (OverflowError, UnicodeEncodeError) as error:
        text = _("The body is not JSON: %(error)s.") % {"error": str(error)}
        raise ApiError(text, status=400, code="invalid_json") from error


def passed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What goes to the engine as it came."""
    return {name: fields[name] for name in PASSED if fields.get(name) is not None}


def refuse(fields: Mapping[str, Any], unsupported: Mapping[str, Sequence[Any]]) -> None:
    """Raise for a known field that cannot be honoured, unless its value asks for nothing."""
    for name, accepted in unsupported.items():
        value = fields.get(name)
        if value is not None and not any(_same(value, one) for one in accepted):
            raise unsupported_field(name)


def unsupported_field(place: str) -> ApiError:
    text = _("%(field)s is not supported here.") % {"field": place}
    return ApiError(text, status=400, code="unsupported_parameter", param=place)


def wrong(text: str, place: str) -> ApiError:
    return ApiError(text, status=400, code="invalid_value", param=place)


def too_deep() -> ApiError:
    return ApiError(_("The body is nested too deeply."), status=400, code="invalid_json")


def _same(value: Any, other: Any) -> bool:
    # Python counts True as 1, JSON does not.
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


def _mistake(said: str, before: str) -> ApiError:
    match = _AT.match(said)
    what, inner = (match["what"], match["place"]) if match else (said, "")
    place = f"{before}.{inner}".strip(".").replace(".[", "[")
    words = {"field": place or "body", "what": what}
    return wrong(_("%(field)s: %(what)s.") % words, place)
