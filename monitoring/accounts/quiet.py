"""From rules for quiet hours and power caps to what holds now. Pure, no Django."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeVar
from zoneinfo import ZoneInfo

import msgspec

from monitoring.accounts.weekly import Weekly, next_change

Wish = TypeVar("Wish", int, float)


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    zone: str
    """IANA name of the zone whose clock is meant."""
    hours: Weekly | None
    """None: always."""
    node: int | None = None
    """None: every node; so too for the next."""
    deployment: int | None = None
    """Whose batch is capped."""
    power_watts: float | None = None
    """Of each accelerator."""
    clock_hertz: float | None = None
    batch_cap: int | None = None

    def holds(self, at: datetime) -> bool:
        return self.hours is None or self.hours.holds(at.astimezone(ZoneInfo(self.zone)))

    def is_for(self, node: int) -> bool:
        return self.node in (None, node)


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What one node is held to. Where several rules hold, the tightest wish of each kind counts."""

    power_watts: float | None = None
    clock_hertz: float | None = None
    batch_caps: dict[int, int] = {}
    """Deployment -> rows."""
    every_batch: int | None = None
    """Cap of deployments that have none of their own."""
    why: str = ""
    """The names of the rules that hold."""

    @property
    def anything(self) -> bool:
        return bool(
            self.power_watts is not None
            or self.clock_hertz is not None
            or self.batch_caps
            or self.every_batch is not None
        )

    def batch_cap(self, deployment: int) -> int | None:
        return tightest([self.batch_caps.get(deployment), self.every_batch])


def tightest(wishes: Iterable[Wish | None]) -> Wish | None:
    return min((wish for wish in wishes if wish is not None), default=None)


def held(rules: Sequence[Rule], node: int, at: datetime) -> Held:
    """What `rules` ask of a node at an instant."""
    holding = [rule for rule in rules if rule.is_for(node) and rule.holds(at)]
    caps: dict[int, int] = {}
    for rule in holding:
        if rule.deployment is not None and rule.batch_cap is not None:
            known = caps.get(rule.deployment, rule.batch_cap)
            caps[rule.deployment] = min(known, rule.batch_cap)
    return Held(
        power_watts=tightest(rule.power_watts for rule in holding),
        clock_hertz=tightest(rule.clock_hertz for rule in holding),
        batch_caps=caps,
        every_batch=tightest(rule.batch_cap for rule in holding if rule.deployment is None),
        why=", ".join(rule.name for rule in holding),
    )


def held_until(rules: Sequence[Rule], node: int, at: datetime) -> datetime | None:
    """When what holds at `at` changes next; None: it stays so."""
    mine = [rule for rule in rules if rule.is_for(node)]
    changes = [
        next_change(lambda moment: held(mine, node, moment), [hours], ZoneInfo(rule.zone), at)
        for rule in mine
        if (hours := rule.hours) is not None
    ]
    return min((change for change in changes if change is not None), default=None)
