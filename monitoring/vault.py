"""Secrets at rest: passwords of BMCs, addresses of webhooks."""

import base64
from typing import Any

import msgspec
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class SealError(Exception):
    """What was sealed cannot be read: the secret key is another one now."""


def seal(content: dict[str, Any]) -> str:
    return _box().encrypt(msgspec.json.encode(content)).decode()


def unseal(sealed: str) -> dict[str, Any]:
    """Raises SealError; whoever shows it asks for the secret to be entered again."""
    try:
        opened = _box().decrypt(sealed.encode())
    except InvalidToken as error:
        raise SealError("sealed with another secret key") from error
    content: dict[str, Any] = msgspec.json.decode(opened)
    return content


def _box() -> Fernet:
    derive = HKDF(SHA256(), length=32, salt=None, info=b"tandem telemetry secrets")
    return Fernet(base64.urlsafe_b64encode(derive.derive(settings.SECRET_KEY.encode())))
