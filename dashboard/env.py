"""Environment variables, read strictly: a malformed value stops the start with one clear line."""

import importlib.util
import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from monitoring import vault

MAIL_PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25}
MAIL_FORM = (
    "smtp://user:password@host:587, smtps:// or smtp+plain://, with characters such as / : # @ in "
    "a password written as %2F %3A %23 %40."
)


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default)


def flag(name: str, default: bool) -> bool:
    value = os.environ.get(name, "").strip().lower()
    if value in ("", "1", "true", "yes", "on", "0", "false", "no", "off"):
        return default if value == "" else value in ("1", "true", "yes", "on")
    raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")


def integer(name: str, default: int, low: int, high: int) -> int:
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    if not value.isdecimal() or not low <= int(value) <= high:
        raise ImproperlyConfigured(f"{name} must be a number from {low} to {high}, not {value!r}.")
    return int(value)


def telemetry_keep(seconds: int, minutes: int, hours: int) -> dict[str, timedelta]:
    """Level -> how long it is kept, from days; a coarser level is kept at least as long."""
    if not seconds <= minutes <= hours:
        raise ImproperlyConfigured(
            "TANDEM_KEEP_SECONDS_DAYS must not be more than TANDEM_KEEP_MINUTES_DAYS, nor that "
            f"more than TANDEM_KEEP_HOURS_DAYS; they are {seconds}, {minutes} and {hours}."
        )
    kept = {"second": seconds, "minute": minutes, "hour": hours}
    return {level: timedelta(days=days) for level, days in kept.items()}


def log_level(name: str, default: str) -> str:
    value = os.environ.get(name, "").strip().upper() or default
    if value not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
        raise ImproperlyConfigured(
            f"{name} must be DEBUG, INFO, WARNING, ERROR or CRITICAL, not {value!r}."
        )
    return value


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = os.environ.get(name, "").strip().lower() or default
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} must be {' or '.join(allowed)}, not {value!r}.")
    return value


def origins(name: str) -> list[str]:
    """Scheme and host each, as a browser sends them."""
    values = names(name, [])
    for value in values:
        url = urlsplit(value)
        if url.scheme not in ("http", "https") or not url.netloc or url.path not in ("", "/"):
            raise ImproperlyConfigured(
                f"{name} must list origins such as https://tandem.example, not {value!r}."
            )
    return [value.rstrip("/") for value in values]


def address(name: str) -> str:
    """Under which people reach the panel, without a path; empty when it is not set."""
    value = os.environ.get(name, "").strip()
    url = urlsplit(value)
    plain = not (url.query or url.fragment or url.path.strip("/"))
    if value and not (url.scheme in ("http", "https") and url.netloc and plain):
        raise ImproperlyConfigured(
            f"{name} must be an address such as https://tandem.example, not {value!r}."
        )
    return value.rstrip("/")


def mail(name: str) -> dict[str, object]:
    """Django's mail settings from `smtp://user:password@host:587`.

    `smtp` talks in the clear until STARTTLS, which is required; `smtps` is TLS from the start;
    `smtp+plain` never encrypts. Empty: no mail.
    """
    return mail_of(os.environ.get(name, ""), name)


def mail_of(text: str, name: str) -> dict[str, object]:
    """The same, from its text; an error says the name alone."""
    value = text.strip()
    try:
        url = urlsplit(value)
        port = url.port
    except ValueError as error:
        # The value holds a password: neither it nor what the parser says of it is repeated.
        raise ImproperlyConfigured(f"{name} cannot be read: {MAIL_FORM}") from error
    if value and (url.scheme not in MAIL_PORTS or not url.hostname or url.path.strip("/")):
        raise ImproperlyConfigured(f"{name} must be {MAIL_FORM}")
    return {
        "EMAIL_HOST": url.hostname or "",
        "EMAIL_PORT": port or MAIL_PORTS.get(url.scheme, 25),
        "EMAIL_HOST_USER": unquote(url.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(url.password or ""),
        "EMAIL_USE_TLS": url.scheme == "smtp",
        "EMAIL_USE_SSL": url.scheme == "smtps",
    }


def vault_keys(name: str) -> list[str]:
    """Keys that seal secrets, the newest first."""
    return [vault.check_key(key, name) for key in names(name, [])]


def names(name: str, default: list[str]) -> list[str]:
    value = os.environ.get(name, "")
    return [part.strip() for part in value.split(",") if part.strip()] or default


def port_range(name: str, default: str) -> range:
    value = os.environ.get(name, "") or default
    low, _, high = value.partition("-")
    if not (low.isdecimal() and high.isdecimal() and 1024 <= int(low) < int(high) <= 65535):
        raise ImproperlyConfigured(f"{name} must look like 21000-30999, not {value!r}.")
    return range(int(low), int(high) + 1)


def folder(name: str) -> str:
    """The full path of a folder, or nothing."""
    value = os.environ.get(name, "")
    if value and not (Path(value).is_absolute() and Path(value).is_dir()):
        raise ImproperlyConfigured(f"{name} must be the full path of a folder, not {value!r}.")
    return value


def package_folder(name: str) -> Path:
    """Where an installed package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ImproperlyConfigured(f"The package {name} is not installed. Run `make install`.")
    return Path(spec.submodule_search_locations[0])


def state_dir(base: Path) -> Path:
    return Path(os.environ.get("TANDEM_STATE_DIR") or base / "var").resolve()


def database(name: str) -> dict[str, object]:
    """Django database settings from `postgresql://user:password@host:port/name?host=/socket/dir`."""
    value = os.environ.get(name, "")
    if not value:
        raise ImproperlyConfigured(
            f"{name} is not set. Run `python manage.py up` for the embedded servers, or set {name} "
            "to your own Postgres, e.g. postgresql://tandem:secret@db.example:5432/tandem."
        )
    try:
        url = urlsplit(value)
        port = url.port
    except ValueError as error:
        # The value holds a password: neither it nor what the parser says of it is repeated.
        raise ImproperlyConfigured(
            f"{name} cannot be read: the port must be a number, and characters such as / : # @ in "
            "a password must be written as %2F %3A %23 %40."
        ) from error
    if url.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured(f"{name} must start with postgresql://, not {url.scheme}://.")
    query = {key: values[-1] for key, values in parse_qs(url.query).items()}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(url.path.lstrip("/")) or "tandem",
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": query.pop("host", "") or url.hostname or "",
        "PORT": str(port or ""),
        "OPTIONS": {**query, "pool": {"min_size": 1, "max_size": 8, "timeout": 5}},
    }
