"""What a meter writes on its line: a level, perhaps with its weighting. Pure."""

import re

LEAST, MOST = 10.0, 160.0
"""dB(A) between which a meter can be; another number on the line is something else."""

_LEVEL = re.compile(r"(?<![\d.])(-?\d{1,3}(?:[.,]\d+)?)\s*(?:dB\s*\(?\s*([A-Z])?\)?)?", re.I)
_WEIGHTED = re.compile(r"\bL([ACZ])(?:[FSI]|eq|p)?\b", re.I)


def level_in(line: str) -> float | None:
    """The level that a line tells, the number before `dB` if there is one; None without any."""
    best: float | None = None
    for found in _LEVEL.finditer(line):
        level = float(found[1].replace(",", "."))
        if not LEAST <= level <= MOST:
            continue
        if "db" in found[0].lower():
            return level
        best = level if best is None else best
    return best


def weighting_in(line: str) -> str:
    """`A`, `C` or `Z` where the line names it: `LAF 41.3`, `41.3 dBC`; else empty."""
    for found in _LEVEL.finditer(line):
        if found[2]:
            return found[2].upper()
    named = _WEIGHTED.search(line)
    return named[1].upper() if named else ""
