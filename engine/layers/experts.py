"""A mixture of experts in place of an MLP: this rank's experts, and its columns of each."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from engine.layers.router import Router, Routing
from engine.parallel import Group
from engine.spans import Span

Part = Callable[[Tensor], Tensor]
"""An MLP of (tokens, hidden) whose result is this rank's part of the sum."""


class MixtureOfExperts:
    """Every rank holds the whole router, so all of them choose the same experts, and each computes
    what it holds: whole experts (`held`), or columns of them. One all-reduce sums that up with the
    MLP beside them (`shared`); tokens never travel between ranks."""

    def __init__(
        self,
        router: Router,
        experts: Sequence[Part],
        held: Span,
        shared: Part | None,
        group: Group,
    ) -> None:
        """`experts` are those of `held`, in order."""
        self.router = router
        self.tokens = torch.zeros(router.count, dtype=torch.int64, device=router.device)
        """How many tokens chose each expert, whichever rank computes it."""
        self._experts = experts
        self._held = held
        self._shared = shared
        self._group = group

    def __call__(self, x: Tensor) -> Tensor:
        total = self._routed(x, self.router(x))
        if self._shared is not None:
            total += self._shared(x)
        return self._group.all_reduce(total)

    def _routed(self, x: Tensor, routing: Routing) -> Tensor:
        """Each expert computes its tokens together; a token adds its experts in order of id."""
        expert_of, order = routing.ids.flatten().sort(stable=True)
        counts = expert_of.bincount(minlength=len(self.tokens))
        self.tokens += counts
        sizes = counts.tolist()
        own = sizes[self._held.start : self._held.stop]
        before = sum(sizes[: self._held.start])
        places = order[before : before + sum(own)]
        total = torch.zeros_like(x)
        if not len(places):
            return total
        rows = places // routing.ids.shape[1]
        shares = zip(self._experts, torch.split(x[rows], own), strict=True)
        results = torch.cat([expert(tokens) for expert, tokens in shares if len(tokens)])
        weighted = results.mul_(routing.weights.flatten()[places].unsqueeze(1))
        return total.index_add_(0, rows, weighted)
