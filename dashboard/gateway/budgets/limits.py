"""Windows, limits and upper bounds. Nothing here waits for anything."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import Any

KINDS = {
    "requests_minute": ("requests", "minute"),
    "requests_day": ("requests", "day"),
    "tokens_minute": ("tokens", "minute"),
    "tokens_day": ("tokens", "day"),
    "money_month": ("money", "month"),
}
"""What is limited, and over which window (UTC)."""
TEMPLATE_TOKENS = 512
"""What a chat template may add to a prompt."""


@dataclass(frozen=True)
class Limit:
    subject: str
    """`user:1`, `key:2`, `team:3`."""
    kind: str
    most: int
    """Money in millionths."""
    name: str = ""

    def counter(self, begun: datetime) -> str:
        return f"{self.subject}:{self.kind}:{window(self.kind, begun)}"


@dataclass(frozen=True)
class Price:
    """Of a million tokens."""

    prompt: Decimal = Decimal(0)
    completion: Decimal = Decimal(0)

    def micros(self, prompt: int, completion: int) -> int:
        """A price a million tokens is so many millionths a token."""
        exact = self.prompt * prompt + self.completion * completion
        return int(exact.to_integral_value(ROUND_CEILING))


def start(kind: str, at: datetime) -> datetime:
    at = at.astimezone(UTC)
    span = KINDS[kind][1]
    if span == "minute":
        return at.replace(second=0, microsecond=0)
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight if span == "day" else midnight.replace(day=1)


def end(kind: str, at: datetime) -> datetime:
    first = start(kind, at)
    span = KINDS[kind][1]
    if span == "month":
        return (first + timedelta(days=32)).replace(day=1)
    return first + (timedelta(minutes=1) if span == "minute" else timedelta(days=1))


def window(kind: str, at: datetime) -> str:
    return str(int(start(kind, at).timestamp()))


def most_tokens(fields: Mapping[str, Any], size: int, context: int) -> tuple[int, int]:
    """Prompt and completion tokens that a request can use at most. A token is a byte or more."""
    prompts = fields.get("prompt")
    several = isinstance(prompts, list) and bool(prompts) and isinstance(prompts[0], str | list)
    copies = _whole(fields.get("n"), 1) * (len(prompts) if several and prompts else 1)
    asked = _whole(fields.get("max_completion_tokens"), 0) or _whole(fields.get("max_tokens"), 0)
    each = min(asked or context, context)
    return min(size + TEMPLATE_TOKENS, context * copies), each * copies


def _whole(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and 0 < value < 10**9 else otherwise
