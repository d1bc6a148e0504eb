"""Which of several replicas a prompt goes to: the one that remembers its beginning, unless that one
has much more to do than the others. Pure.

Consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam 2017), over rendezvous hashes
(Thaler, Ravishankar 1998): every key has its own order of the replicas, and takes the first that is
not full. Where one replica leaves, only its own keys move.
"""

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

FACTOR = 1.25
"""A replica is full with this many times the mean of what is outstanding."""
LEADING = 4096
"""Characters of a prompt that count."""


def preferred(key: str, names: Sequence[str], outstanding: Mapping[str, int]) -> list[str]:
    """The replicas in the order in which to try them: first its own order among those that are not
    full, then among the others."""
    ordered = sorted(names, key=lambda name: _weight(key, name), reverse=True)
    total = sum(outstanding.get(name, 0) for name in names)
    most = math.ceil(FACTOR * (total + 1) / len(names)) if names else 0
    return sorted(ordered, key=lambda name: outstanding.get(name, 0) >= most)


def leading_text(fields: Mapping[str, Any]) -> str:
    """What a request's prompt begins with: the text that answers to one conversation share."""
    prompt = fields.get("prompt")
    if prompt is None:
        messages = fields.get("messages")
        prompt = _beginning(messages) if isinstance(messages, list) else ""
    return str(prompt)[:LEADING]


def _beginning(messages: Sequence[Any]) -> str:
    """Everything up to the first thing that a person said."""
    texts: list[str] = []
    for message in messages:
        if not isinstance(message, dict):
            break
        texts.append(f"{message.get('role')}\n{message.get('content')}\n")
        if message.get("role") == "user":
            break
    return "".join(texts)


def _weight(key: str, name: str) -> bytes:
    text = f"{name}\0{key}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=8).digest()
