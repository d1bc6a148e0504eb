"""Log lines of every process: text for people, or one JSON object a line for collectors.

`TANDEM_LOG_FORMAT` chooses, strictly. Secrets are taken out of both. No Django, no torch.
"""

import logging
import os
import re
import time
import traceback
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Literal, TextIO

import msgspec

from engine.errors import ConfigError
from engine.errors import gettext_noop as _

FORMAT_VARIABLE = "TANDEM_LOG_FORMAT"
SECRET_VARIABLES = ("TANDEM_SECRET_KEY", "TANDEM_NODE_TOKEN", "TANDEM_ADMIN_PASSWORD")
HIDDEN = "***"
TOO_SHORT = 8
"""Characters below which a value is no secret worth a name, and hiding it would hide words."""

LogFormat = Literal["text", "json"]
_FORMATS: dict[str, LogFormat] = {"text": "text", "json": "json"}
Level = Literal["debug", "info", "warning", "error", "critical"]

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Of the request that is being answered, where one is."""

_about: dict[str, str | int] = {}
_hidden: set[str] = set()

_PATTERNS = (
    (re.compile(r"\b(sk-tdm-|sk-|tdn_)[\w-]{8,}"), r"\1" + HIDDEN),
    (re.compile(r"(?i)\b(bearer|basic)(\s+)[\w.~+/=-]{8,}"), r"\1\2" + HIDDEN),
    (re.compile(r"(://[^/\s:@]*):[^/\s@]+@"), r"\1:" + HIDDEN + "@"),
    (
        re.compile(
            r"(?i)((?:api[_-]?key|password|passwd|secret|token|\bauthorization)"
            r"[\"']?\s*[=:]\s*[\"']?)(?!bearer\b|basic\b)[^\s\"',;&}]{8,}"
        ),
        r"\1" + HIDDEN,
    ),
)


class Line(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One line as a collector gets it."""

    time: str
    """RFC 3339, in UTC."""
    level: Level
    logger: str
    message: str
    node: str = ""
    launch: str = ""
    rank: int | None = None
    request_id: str = ""
    exception: str = ""


class Read(msgspec.Struct, frozen=True):
    """What a line says that some process printed."""

    text: str
    level: Level | Literal[""] = ""
    """Empty where it does not say."""
    request_id: str = ""


_lines = msgspec.json.Decoder(Line)


def wanted_format(environment: Mapping[str, str] = os.environ) -> LogFormat:
    """Raises ConfigError."""
    value = environment.get(FORMAT_VARIABLE, "").strip().lower() or "text"
    if value in _FORMATS:
        return _FORMATS[value]
    raise ConfigError(
        _("%(name)s must be text or json, not %(value)s."),
        name=FORMAT_VARIABLE,
        value=repr(value),
    )


def about(**fields: str | int) -> None:
    """What every line of this process says of itself from now on: node, launch, rank."""
    _about.update(fields)


def hide(*secrets: str) -> None:
    """Have these never appear in a line, wherever they come from."""
    _hidden.update(secret for secret in secrets if len(secret) >= TOO_SHORT)


def redact(text: str) -> str:
    for secret in _hidden:
        text = text.replace(secret, HIDDEN)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
        return encode_line(
            record.getMessage(),
            level=_level(record.levelno),
            logger=record.name,
            at=record.created,
            exception=trace.rstrip(),
            own={name: value for name, value in vars(record).items() if name in _OWN},
        )


_OWN = ("node", "launch", "rank", "request_id")
"""What a record may say of itself through `extra`."""


def encode_line(
    message: str,
    *,
    level: Level = "info",
    logger: str = "",
    at: float | None = None,
    exception: str = "",
    own: Mapping[str, str | int] | None = None,
) -> str:
    fields = {"request_id": request_id.get()} | _about | dict(own or {})
    line = Line(
        time=_moment(time.time() if at is None else at),
        level=level,
        logger=logger,
        message=redact(message),
        node=str(fields.get("node", "")),
        launch=str(fields.get("launch", "")),
        rank=int(fields["rank"]) if "rank" in fields else None,
        request_id=str(fields.get("request_id", "")),
        exception=redact(exception),
    )
    return msgspec.json.encode(line).decode()


def set_up(stream: TextIO, text: str = "%(asctime)s %(levelname)s %(message)s") -> None:
    """Log to `stream` as the environment says. Raises ConfigError."""
    wanted = wanted_format()
    hide(*(os.environ.get(name, "") for name in SECRET_VARIABLES))
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if wanted == "json" else TextFormatter(text))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def read_line(line: str) -> Read:
    """A JSON line of ours as its words, its level and its request; anything else as it is."""
    if line.startswith("{"):
        try:
            told = _lines.decode(line)
        except msgspec.MsgspecError:
            return Read(line, _guess(line))
        text = f"{told.message}\n{told.exception}" if told.exception else told.message
        return Read(text, told.level, told.request_id)
    return Read(line, _guess(line))


_KERNEL: dict[str, Level] = {
    "emerg": "critical",
    "alert": "critical",
    "crit": "critical",
    "err": "error",
    "error": "error",
    "warning": "warning",
    "notice": "info",
    "info": "info",
    "debug": "debug",
}
"""What a kernel's line begins with, and many a program's."""
_WORDS = re.compile(r"\b(CRITICAL|FATAL|ERROR|WARNING|WARN|INFO|DEBUG)\b")
_MEANT: dict[str, Level] = {"FATAL": "critical", "WARN": "warning"}
_BEGINNING = 80
"""Characters in which a logger says its level."""


def _guess(line: str) -> Level | Literal[""]:
    """From what it begins with, a logger's word or the head of a traceback; else nothing."""
    beginning, colon, _rest = line[:_BEGINNING].partition(": ")
    if colon and beginning in _KERNEL:
        return _KERNEL[beginning]
    if line.startswith("Traceback (most recent call last)"):
        return "error"
    if word := _WORDS.search(line[:_BEGINNING]):
        return _MEANT.get(word[1]) or msgspec.convert(word[1].lower(), Level)
    return ""


def _level(number: int) -> Level:
    steps: tuple[tuple[int, Level], ...] = (
        (logging.CRITICAL, "critical"),
        (logging.ERROR, "error"),
        (logging.WARNING, "warning"),
        (logging.INFO, "info"),
    )
    return next((level for least, level in steps if number >= least), "debug")


def _moment(at: float) -> str:
    whole, thousandths = divmod(round(at * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{thousandths:03d}Z"
