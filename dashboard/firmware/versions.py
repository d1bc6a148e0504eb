"""Which of two versions is the newer one, where that can be told. Pure."""

import re
from collections.abc import Sequence
from enum import Enum

BREAKS = re.compile(r"[.\-_+:~ ]+")
HEX = re.compile(r"[0-9a-f]{2}")


class Order(Enum):
    OLDER = "older"
    SAME = "same"
    NEWER = "newer"
    UNKNOWN = "unknown"
    """Their makers may know; nobody guesses."""


def compare(version: str, other: str) -> Order:
    """Whether the first is newer than the second, or what else it is.

    Decimal parts count as numbers. Pairs of digits throughout may be hexadecimal, as in
    `97.00.5E.00.01`. Other letters must be the same up to where the versions differ.
    """
    mine, others = _parts(version), _parts(other)
    if not mine or not others:
        return Order.UNKNOWN
    digits = _alike_hex(mine, others)
    for left, right in zip(mine, others, strict=False):
        if left == right:
            continue
        if digits:
            return _of(left > right)
        if not (left.isdecimal() and right.isdecimal()):
            return Order.UNKNOWN
        if int(left) != int(right):
            return _of(int(left) > int(right))
    return _by_rest(mine, others)


def _parts(version: str) -> list[str]:
    plain = version.strip().lower()
    if not plain.isascii():
        return []
    return [part for part in BREAKS.split(re.sub(r"^v(?=\d)", "", plain)) if part]


def _alike_hex(mine: Sequence[str], others: Sequence[str]) -> bool:
    alike = len(mine) == len(others) > 2
    return alike and all(HEX.fullmatch(part) for part in (*mine, *others))


def _by_rest(mine: Sequence[str], others: Sequence[str]) -> Order:
    """One goes on where the other ends: `1.2.1` after `1.2`, but `1.2-rc1` before or after it?"""
    common = min(len(mine), len(others))
    rest = [*mine[common:], *others[common:]]
    if not all(part.isdecimal() for part in rest):
        return Order.UNKNOWN
    if not any(int(part) for part in rest):
        return Order.SAME
    return _of(len(mine) > len(others))


def _of(newer: bool) -> Order:
    return Order.NEWER if newer else Order.OLDER
