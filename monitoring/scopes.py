"""What a page looks at. Which subjects that is, only the application above knows: it registers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

ScopeName = Literal["fleet", "node", "deployment", "everything"]
"""`everything` is the fleet with its ranks, for exporters."""


@dataclass(frozen=True)
class Subject:
    """Something with readings. `label` is in the reader's language."""

    subject: str
    label: str
    node: int | None = None
    """Set for what is a node's own; an engine's readings come through whichever node sends them.

    `group:node`, `group:gpu` and `group:engine` sum up a fleet too large for a line each: their
    series are labelled `sum`, `mean`, `low`, `high` and `count`.
    """
    node_name: str = ""
    deployment: str = ""
    rank: str = ""

    @property
    def topic(self) -> str:
        return topic_of(self.node, self.subject)

    @property
    def role(self) -> str:
        """`node`, `gpu`, `engine`, `rank` or `group`: lines of a role are told apart by colour."""
        if self.subject.startswith("group:"):
            return "group"
        if self.node is not None:
            return "gpu" if self.subject.startswith("gpu:") else "node"
        return "rank" if self.rank else "engine"


def launch_of(subject: str) -> str | None:
    """`abc` for `launch:abc` and `launch:abc:rank0`, None for anything else."""
    kind, _, rest = subject.partition(":")
    return rest.partition(":")[0] if kind == "launch" else None


def is_rank(subject: str) -> bool:
    return subject.startswith("launch:") and subject.count(":") > 1


@lru_cache(maxsize=16_384)
def topic_of(node: int | None, subject: str) -> str:
    """One name for a subject across nodes: launch ids and groups are unique, `node` is not."""
    alone = launch_of(subject) is not None or subject.startswith("group:")
    return subject if alone else f"{node}/{subject}"


@dataclass(frozen=True)
class Hidden:
    """Keys of what somebody may not see. Those from whom the same is hidden are told the same."""

    nodes: frozenset[int] = frozenset()
    deployments: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.nodes or self.deployments)


NOTHING = Hidden()

Resolver = Callable[[ScopeName, int | None, Hidden], list[Subject]]
Limiter = Callable[[object], Hidden]

_resolvers: list[tuple[Resolver, Limiter]] = []


def register(resolver: Resolver, limiter: Limiter) -> None:
    """Called once when the application is ready. Later ones replace earlier ones."""
    _resolvers[:] = [(resolver, limiter)]


def subjects(scope: ScopeName, pk: int | None = None, hidden: Hidden = NOTHING) -> list[Subject]:
    """In the order lines are drawn; empty when the thing is gone, hidden, or nothing runs."""
    return _registered()[0](scope, pk, hidden)


def hidden_from(user: object) -> Hidden:
    """What the signed-in person may not see."""
    return _registered()[1](user)


def _registered() -> tuple[Resolver, Limiter]:
    if not _resolvers:
        raise RuntimeError("No resolver was registered with monitoring.scopes.")
    return _resolvers[0]
