"""Which bytes a request asks for (RFC 9110, one range). Pure."""

import re

ONE_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class Unsatisfiable(Exception):
    """No byte of what is asked for exists."""


def asked_range(header: str, size: int) -> tuple[int, int] | None:
    """First byte and the one after the last; None for the whole. What is not one plain range is
    answered with the whole, as the RFC allows."""
    found = ONE_RANGE.fullmatch(header.replace(" ", ""))
    if found is None or found[0] == "bytes=-":
        return None
    first, last = found.groups()
    if not first:
        if int(last) == 0 or size == 0:
            raise Unsatisfiable
        return max(0, size - int(last)), size
    if last and int(last) < int(first):
        return None
    if int(first) >= size:
        raise Unsatisfiable
    return int(first), min(size, int(last) + 1) if last else size
