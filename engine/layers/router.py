"""Which experts compute each token, and how much each counts.

A token's experts must not depend on the other tokens of its step, nor differ between ranks that
hold the same token. So scores come from sums that are exact in any order, and equal scores go to
the lower expert id.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model_config import Experts

_MANTISSA = 53
"""Bits of a whole number that float64 holds exactly."""


@dataclass(frozen=True)
class Routing:
    """The experts of each token, best first."""

    ids: Tensor
    """int64 (tokens, experts a token)"""
    weights: Tensor
    """float32 (tokens, experts a token)"""


class Router:
    """The whole router, on every rank: `weight` (experts, hidden), `bias` (experts,).

    Its numbers are as fine as float32's and never quantised further. The bias (DeepSeek-V3, arXiv
    2412.19437) counts only when experts are chosen.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, experts: Experts) -> None:
        self._product = ExactProduct(weight)
        self._bias = bias
        self._experts = experts

    @property
    def count(self) -> int:
        return self._experts.count

    @property
    def device(self) -> torch.device:
        return self._product.device

    @property
    def nbytes(self) -> int:
        return self._product.nbytes + (0 if self._bias is None else self._bias.nbytes)

    def __call__(self, x: Tensor) -> Routing:
        """Route `x` (tokens, hidden). A token that is not finite gets weights that are not."""
        experts = self._experts
        scores = score(self._product(x), experts)
        wanted = scores if self._bias is None else scores + self._bias
        if experts.groups > experts.top_groups:
            wanted = _within_best_groups(wanted, experts)
        ids = _best(wanted, experts.per_token)
        weights = scores.gather(1, ids)
        if experts.renormalize:
            weights = weights / weights.sum(dim=1, keepdim=True).clamp_min(1e-20)
        return Routing(ids, weights * experts.scale)


class ExactProduct:
    """x (tokens, columns) times `weight` (rows, columns), the same for a token in every batch.

    Both are rounded to whole numbers of about 20 bits, so their products sum exactly in float64.
    """

    def __init__(self, weight: Tensor) -> None:
        self._levels = 2.0 ** ((_MANTISSA - math.ceil(math.log2(weight.shape[1]))) // 2)
        codes, steps = self._whole(weight)
        self._codes, self._steps = codes.t().contiguous(), steps.t().contiguous()

    @property
    def device(self) -> torch.device:
        return self._codes.device

    @property
    def nbytes(self) -> int:
        return self._codes.nbytes + self._steps.nbytes

    def __call__(self, x: Tensor) -> Tensor:
        codes, steps = self._whole(x)
        return (codes @ self._codes).div_(steps).div_(self._steps).float()

    def _whole(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Whole numbers in float64, and for each row how many of them make 1."""
        peaks = values.abs().amax(dim=1, keepdim=True).double()
        steps = self._levels / peaks.clamp_min_(torch.finfo(torch.float32).tiny)
        return values.double().mul_(steps).round_(), steps


def score(logits: Tensor, experts: Experts) -> Tensor:
    """Scores over all experts (tokens, experts), before any is chosen."""
    if experts.scoring == "softmax":
        return logits.softmax(dim=1)
    # The first of a softmax over (x, 0) is the sigmoid of x. torch's own rounds the last few
    # numbers of a tensor differently, so that a token's scores would depend on its place.
    return torch.stack((logits, torch.zeros_like(logits)), dim=2).softmax(dim=2)[:, :, 0]


def _within_best_groups(wanted: Tensor, experts: Experts) -> Tensor:
    """`wanted`, but -inf outside each token's best groups."""
    grouped = wanted.view(len(wanted), experts.groups, -1)
    if experts.group_score == "max":
        totals = grouped.amax(dim=2)
    else:
        totals = grouped.topk(min(2, grouped.shape[2]), dim=2).values.sum(dim=2)
    outside = torch.ones_like(totals, dtype=torch.bool)
    outside.scatter_(1, _best(totals, experts.top_groups), False)
    return grouped.masked_fill(outside.unsqueeze(2), float("-inf")).view_as(wanted)


def _best(values: Tensor, count: int) -> Tensor:
    """Columns of the `count` largest values of each row; of equal ones the first."""
    return values.sort(dim=1, descending=True, stable=True).indices[:, :count]
