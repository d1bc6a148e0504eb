"""Chained hashes that name the contents of full KV blocks. Pure."""

import hashlib
from array import array
from collections.abc import Sequence

import msgspec

from engine.config import BLOCK_SIZE


def namespace(model: str, revision: str, salt: str = "") -> bytes:
    """Root of a chain: blocks are only ever shared inside one (model, weights, tenant).

    Sampling settings are no part of it: they do not change what a block holds.
    """
    return hashlib.blake2b(msgspec.msgpack.encode((model, revision, salt)), digest_size=16).digest()


def block_hash(parent: bytes, tokens: Sequence[int]) -> bytes:
    """Name of one full block: everything before it (`parent`) and its own tokens."""
    return hashlib.blake2b(parent + array("I", tokens).tobytes(), digest_size=16).digest()


def chain(
    root: bytes, tokens: Sequence[int], blocks: int, known: Sequence[bytes] = ()
) -> list[bytes]:
    """Hashes of the first `blocks` full blocks of `tokens`, of which some may be `known`."""
    hashes = list(known)
    parent = hashes[-1] if hashes else root
    for index in range(len(hashes), blocks):
        parent = block_hash(parent, tokens[index * BLOCK_SIZE : (index + 1) * BLOCK_SIZE])
        hashes.append(parent)
    return hashes
