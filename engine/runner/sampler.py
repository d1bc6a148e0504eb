"""Draws one token a row: temperature, then top-k, then top-p, then the inverse of the cumulative
distribution at a number keyed by (seed, position).

Ties at the edge of top-k and top-p go to the lower token id, so the kept set never depends on how a
sort happened to order equal values, nor on the other rows of the batch.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.protocol.steps import Sampling
from engine.runner.noise import uniform

_FIRST_CANDIDATES = 256
"""How many of the largest logits are sorted before more are needed for top-p."""


@dataclass(frozen=True)
class Draws:
    tokens: list[int]
    """One a row; meaningless where `finite` is False."""
    finite: list[bool]


def sample(
    logits: Tensor, settings: list[Sampling], positions: list[int], token_count: int
) -> Draws:
    """Sample from `logits` (rows, vocabulary); ids from `token_count` on are never drawn.

    `positions` are where the drawn tokens will stand in their sequences.
    """
    logits = logits[:, :token_count]
    finite = logits.isfinite().all(dim=1).tolist()
    tokens = logits.argmax(dim=1).tolist()
    for row, setting in enumerate(settings):
        if finite[row] and not is_greedy(setting):
            tokens[row] = _draw(logits[row], setting, uniform(setting.seed, positions[row]))
    return Draws(tokens, finite)


def is_greedy(setting: Sampling) -> bool:
    return setting.temperature <= 0 or setting.top_k == 1


def _draw(logits: Tensor, setting: Sampling, noise: float) -> int:
    # Subtracting the maximum first keeps a tiny temperature from overflowing.
    scaled = (logits.double() - logits.max().double()) / setting.temperature
    weights = scaled.exp()
    if 0 < setting.top_k < len(logits):
        weights = keep_top_k(weights, setting.top_k)
    if setting.top_p < 1:
        weights = keep_top_p(weights, setting.top_p)
    cumulative = weights.cumsum(dim=0)
    # The first id whose cumulative weight exceeds the target always has weight itself.
    target = noise * cumulative[-1]
    found = int(torch.searchsorted(cumulative, target, right=True))
    return min(found, int(weights.nonzero()[-1]))


def keep_top_k(weights: Tensor, k: int) -> Tensor:
    """Zero all but the `k` largest weights."""
    edge = weights.topk(k).values[-1]
    return _keep(weights, edge, k)


def keep_top_p(weights: Tensor, p: float) -> Tensor:
    """Zero all but the fewest largest weights that hold at least `p` of the total; at least one."""
    needed = p * weights.sum()
    count = min(_FIRST_CANDIDATES, len(weights))
    while True:
        largest = weights.topk(count).values
        reached = largest.cumsum(dim=0)
        if reached[-1] >= needed or count == len(weights):
            break
        count = min(8 * count, len(weights))
    kept = min(int((reached < needed).sum()) + 1, count)
    return _keep(weights, largest[kept - 1], kept)


def _keep(weights: Tensor, edge: Tensor, count: int) -> Tensor:
    """The `count` largest: all above `edge`, then those equal to it by id."""
    above = weights > edge
    equal = (weights == edge).nonzero().squeeze(1)[: count - int(above.sum())]
    kept = torch.where(above, weights, torch.zeros_like(weights))
    kept[equal] = weights[equal]
    return kept
