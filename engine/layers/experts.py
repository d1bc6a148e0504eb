"""A mixture of experts in place of an MLP, for this rank's columns of every expert."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from engine.layers.router import Router
from engine.parallel import Group

Part = Callable[[Tensor], Tensor]
"""An MLP of (tokens, hidden) whose result is this rank's part of the sum."""


class MixtureOfExperts:
    """Every rank holds the whole router and a slice of each expert, so all ranks choose the same
    experts and one all-reduce sums them all, with the MLP beside them (`shared`)."""

    def __init__(
        self, router: Router, experts: Sequence[Part], shared: Part | None, group: Group
    ) -> None:
        self.router = router
        self.tokens = torch.zeros(len(experts), dtype=torch.int64)
        """How many tokens each expert has computed."""
        self._experts = experts
        self._shared = shared
        self._group = group

    def __call__(self, x: Tensor) -> Tensor:
        total = self._routed(x)
        if self._shared is not None:
            total += self._shared(x)
        return self._group.all_reduce(total)

    def _routed(self, x: Tensor) -> Tensor:
        """Each expert computes its tokens together; a token adds its experts in order of id."""
        routing = self.router(x)
        expert_of, order = routing.ids.flatten().sort(stable=True)
        rows = order // routing.ids.shape[1]
        counts = expert_of.bincount(minlength=len(self._experts))
        self.tokens += counts
        shares = zip(self._experts, torch.split(x[rows], counts.tolist()), strict=True)
        results = torch.cat([expert(tokens) for expert, tokens in shares if len(tokens)])
        weighted = results.mul_(routing.weights.flatten()[order].unsqueeze(1))
        return torch.zeros_like(x).index_add_(0, rows, weighted)
