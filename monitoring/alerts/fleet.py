"""What alerts must know of the fleet and only the application above knows: it registers."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True)
class NodeFacts:
    pk: int
    name: str
    joined: bool
    """Whether its agent has ever connected."""
    online: bool
    heard: datetime | None
    """When its agent last said anything."""
    connected: datetime | None
    held: datetime | None = None
    """Since when a firmware update that failed has kept it out of service; None: none has."""
    simulated: bool = False
    """Its readings are made up."""


@dataclass(frozen=True)
class DeploymentFacts:
    pk: int
    name: str
    token_seconds: float | None
    """The time per token that it should keep; None where nobody asked for one."""
    nodes: frozenset[int] = field(default_factory=frozenset)
    """Those on which it runs now."""


class Fleet(Protocol):
    def nodes(self) -> list[NodeFacts]: ...

    def deployments(self) -> list[DeploymentFacts]: ...

    def changed(self) -> None:
        """Open pages show alerts: have them look again once this is committed."""

    def dossier(
        self,
        nodes: Collection[int],
        deployments: Collection[int],
        since: datetime,
        until: datetime,
    ) -> dict[str, Any]:
        """What a post-mortem needs: events, jobs, log lines, versions, plans; no secrets."""


_fleets: list[Fleet] = []


def register(fleet: Fleet) -> None:
    """Called once when the application is ready. Later ones replace earlier ones."""
    _fleets[:] = [fleet]


def fleet() -> Fleet:
    if not _fleets:
        raise RuntimeError("No fleet was registered with monitoring.alerts.fleet.")
    return _fleets[0]


def simulated_nodes() -> frozenset[int]:
    """Whose readings are made up: they never pass for real ones."""
    return frozenset(facts.pk for facts in fleet().nodes() if facts.simulated)
