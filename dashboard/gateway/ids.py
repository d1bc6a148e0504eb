"""Ids of streamed answers. One says whose it is and where it began, signed: any web process can
then find it again for its owner, and nobody else can."""

import uuid

import msgspec
from django.utils.crypto import constant_time_compare, salted_hmac

SALT = "dashboard.gateway.stream"
SIGNATURE = 32


class StreamId(msgspec.Struct, frozen=True):
    number: str
    launch: str
    owner: int
    """Primary key of the API key that asked."""


def new_number() -> str:
    return f"req_{uuid.uuid4().hex}"


def sign(stream: StreamId) -> str:
    """Letters, digits, dots and underscores: fit for a header and a path."""
    text = f"{stream.number}.{stream.launch}.{stream.owner}"
    return f"{text}.{_signature(text)}"


def read(text: str) -> StreamId | None:
    """None for what this panel never signed."""
    signed, _dot, signature = text.rpartition(".")
    if not constant_time_compare(signature, _signature(signed)):
        return None
    number, launch, owner = signed.split(".")
    return StreamId(number, launch, int(owner))


def _signature(text: str) -> str:
    return salted_hmac(SALT, text, algorithm="sha256").hexdigest()[:SIGNATURE]
