"""How many KV blocks every rank has room for."""

from collections.abc import Sequence
from itertools import groupby

from engine.config import BLOCK_SIZE, EngineConfig
from engine.errors import ConfigError
from engine.errors import gettext_noop as _
from engine.protocol.steps import Loaded

SHORTEST = 256
"""Tokens of a context that is still of use."""


def fit_blocks(config: EngineConfig, context_length: int, loaded: Sequence[Loaded]) -> int:
    """The configured number, or as many as the fullest machine holds; every rank gets the same.

    Raises ConfigError when that is too little for one short answer.
    """
    longest = min(config.max_model_len or context_length, config.num_kv_blocks * BLOCK_SIZE)
    least = -(-min(longest, SHORTEST) // BLOCK_SIZE)
    by_machine = sorted(loaded, key=lambda rank: rank.machine)
    machines = [list(ranks) for _m, ranks in groupby(by_machine, key=lambda rank: rank.machine)]
    fullest = min(machines, key=_room)
    if (room := _room(fullest)) >= least:
        return min(config.num_kv_blocks, room)
    raise ConfigError(
        _(
            "Beside the weights, %(available)s MB of memory are left on the fullest box, and "
            "%(need)s MB are needed for one answer of %(tokens)s tokens. Free memory there, lower "
            "the batch size or the token budget, or choose a smaller number type."
        ),
        available=max(0, _available(fullest)) // 10**6,
        need=-(-_need(fullest, least) // 10**6),
        tokens=least * BLOCK_SIZE,
    )


def _available(ranks: Sequence[Loaded]) -> int:
    """What the last of them to load has seen free is free for all."""
    return min(rank.available_bytes for rank in ranks)


def _need(ranks: Sequence[Loaded], blocks: int) -> int:
    return sum(rank.workspace_bytes + blocks * rank.block_bytes for rank in ranks)


def _room(ranks: Sequence[Loaded]) -> int:
    """Blocks that each of a machine's ranks can have."""
    left = _available(ranks) - _need(ranks, 0)
    each = sum(rank.block_bytes for rank in ranks)
    # The block that pads block tables takes as much as any other.
    return max(0, left // max(1, each) - 1)
