"""Secrets at rest: passwords of BMCs, addresses of webhooks, keys of second factors.

Their keys lie outside the database: in the environment, else in a file of the state folder. The
first key seals, each of them opens, and last of all the one that older versions made of Django's
secret key, so that what they sealed can be read until it is sealed anew.
"""

import base64
import binascii
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

Place = Literal["environment", "file", "secret key"]


class SealError(Exception):
    """What was sealed cannot be read: its key is no longer there."""


class Rotating(Exception):
    """Somebody else changes the keys at this moment."""


def seal(content: dict[str, Any]) -> str:
    return seal_text(msgspec.json.encode(content).decode())


def unseal(sealed: str) -> dict[str, Any]:
    """Raises SealError; whoever shows it asks for the secret to be entered again."""
    content: dict[str, Any] = msgspec.json.decode(unseal_text(sealed))
    return content


def seal_text(text: str) -> str:
    return _ring().encrypt(text.encode()).decode()


def unseal_text(sealed: str) -> str:
    """Raises SealError."""
    try:
        return _ring().decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise SealError("sealed with a key that is no longer there") from error


def is_current(sealed: str) -> bool:
    """Whether the first key, which seals, has sealed it."""
    try:
        Fernet(keys()[0]).decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


def reseal(sealed: str) -> str:
    """The same content under the first key. Raises SealError."""
    return seal_text(unseal_text(sealed))


def place() -> Place:
    """Where the key that seals comes from."""
    if settings.VAULT_KEYS:
        return "environment"
    return "file" if _kept() else "secret key"


def keys() -> list[str]:
    """In the order in which they are tried; the first one seals."""
    return list(dict.fromkeys([*settings.VAULT_KEYS, *_kept(), _derived(settings.SECRET_KEY)]))


def new_key() -> str:
    return Fernet.generate_key().decode()


@contextmanager
def one_rotation() -> Iterator[None]:
    """Of two that change the keys of the file one is refused: it would write over the other's, or
    forget one that the other still seals with. Raises Rotating, or OSError."""
    path: Path = settings.VAULT_FILE
    with path.with_name(f"{path.name}.lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Rotating("another rotation is under way") from error
        yield


def add_key() -> None:
    """Put a new key before those of the file; every process seals with it from now on.

    Raises OSError."""
    write_keys(settings.VAULT_FILE, [new_key(), *_kept()])


def keep_first_key() -> int:
    """Forget every key of the file but the first; how many are gone. Raises OSError."""
    kept = _kept()
    write_keys(settings.VAULT_FILE, kept[:1])
    return len(kept) - 1


def write_keys(path: Path, wanted: Sequence[str]) -> None:
    """Readers see the file of before or the whole new one, also after a loss of power."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("".join(f"{key}\n" for key in wanted))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def check_key(key: str, where: str) -> str:
    """Raises ImproperlyConfigured, which never repeats the key."""
    try:
        sound = len(base64.b64decode(key.encode(), altchars=b"-_", validate=True)) == 32
    except (binascii.Error, ValueError):
        sound = False
    if not sound:
        raise ImproperlyConfigured(
            f"{where} must hold keys of 32 bytes in URL-safe base64, as `manage.py rotate_secrets "
            "--print-key` makes them; one of them is something else."
        )
    return key


def _ring() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys()])


def _kept() -> list[str]:
    """Those of the file, read anew when it has changed: a rotation reaches all processes."""
    path: Path = settings.VAULT_FILE
    try:
        state = path.stat()
    except FileNotFoundError:
        return []
    return list(_read(path, state.st_ino, state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=4)
def _read(path: Path, inode: int, written: int, size: int) -> tuple[str, ...]:
    lines = path.read_text().split()
    return tuple(check_key(line, str(path)) for line in lines)


@lru_cache(maxsize=4)
def _derived(secret_key: str) -> str:
    derive = HKDF(SHA256(), length=32, salt=None, info=b"tandem telemetry secrets")
    return base64.urlsafe_b64encode(derive.derive(secret_key.encode())).decode()
