"""What makes an answer the same wherever it is told: its names and its seed."""

import hashlib
import time
from secrets import randbits, token_hex

import msgspec

from engine.text.tokenizer import TextTokenizer


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of one API request; a gateway gets it once and hands it back to have the answer continued."""

    id: str
    """In the ids of the reply and of its tool calls."""
    created: int
    """Seconds since 1970."""
    seed: int
    """Answer i is drawn with seed + i."""
    vocabulary: str
    """What the token ids belong to."""
    base: tuple[int, ...] = ()
    """By answer: chunks that were sent before its first token here, less those its tokens until
    then would make here. Empty for none."""


def new_origin(seed: int | None, vocabulary: str) -> Origin:
    return Origin(
        id=token_hex(12),
        created=int(time.time()),
        seed=randbits(63) if seed is None else seed,
        vocabulary=vocabulary,
    )


def vocabulary_of(tokenizer: TextTokenizer) -> str:
    """The same for models that mean the same by every token id."""
    digest = hashlib.blake2b(digest_size=8)
    for token in tokenizer.metadata.tokens:
        digest.update(token.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
