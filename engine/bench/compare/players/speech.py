"""A contestant's side of the wire: a line of JSON in, a line of JSON out.

    {"ask": "Decode", "with": {"batch": 8, …}}
    {"said": {"seconds": 1.2, "tokens": 512}, "peak_bytes": 912680960}
    {"refused": "This version of … cannot …"}

What libraries print goes to standard error, or it would land between the answers.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TextIO

from engine.bench.compare.players import asks, tree


class Refused(Exception):
    """A sentence: why this contestant cannot do what it was asked."""


class Player:
    """One engine, loaded once. What it does not do, it refuses."""

    def answer(self, ask: asks.Ask) -> asks.Said:
        name = f"on_{type(ask).__name__.lower()}"
        do: Callable[[asks.Ask], asks.Said] | None = getattr(self, name, None)
        if do is None:
            raise Refused(f"This contestant cannot be asked to {type(ask).__name__}.")
        return do(ask)

    def close(self) -> None:
        """End what would go on without it."""


def play(make: Callable[[], Player]) -> None:
    """Answer until there is nobody who asks."""
    out = _own_output()
    player: Player | None = None
    try:
        for line in sys.stdin:
            try:
                player = player or make()
                reply = _reply(player, line)
            except (Refused, ImportError) as error:
                reply = {"refused": _sentence(error)}
            out.write(json.dumps(reply) + "\n")
            out.flush()
    finally:
        if player is not None:
            player.close()


def _own_output() -> TextIO:
    """Standard output for answers alone."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return out


def _reply(player: Player, line: str) -> dict[str, object]:
    heard = json.loads(line)
    ask = asks.ASKS[heard["ask"]](**heard["with"])
    said = player.answer(ask)
    return {"said": asdict(said), "peak_bytes": tree.peak_bytes(os.getpid())}


def _sentence(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"It cannot be imported there: {error}."
    return str(error)
