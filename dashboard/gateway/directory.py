"""Where a route's heads are, remembered for when the database is away."""

import time
from collections import Counter
from dataclasses import dataclass, field

from dashboard.choices import ReplicaRole
from dashboard.gateway.balance import preferred
from dashboard.gateway.patience import AWAY, once, patiently
from dashboard.gateway.routes import NotReady, Target, find_targets

FRESH_SECONDS = 0.2
"""Streams that look for a head at the same time share one question to the database this long."""

outstanding: Counter[str] = Counter()
"""Answers on their way through this process, by launch."""


@dataclass
class _Known:
    targets: list[Target] = field(default_factory=list)
    error: NotReady | None = None
    asked_at: float = 0.0


_known: dict[str, _Known] = {}


async def targets_of(route: str, key: str = "") -> list[Target]:
    """In the order to ask them, for a prompt that begins with `key`.

    404 for an unknown route; NotReady with the reason when nobody answers.
    """
    try:
        targets = await once(find_targets, route)
    except AWAY:
        known = _known.get(route)
        targets = known.targets if known and known.targets else await patiently(find_targets, route)
    _known[route] = _Known(targets, asked_at=time.monotonic())
    return _balanced(targets, key)


async def current_targets(route: str, key: str = "") -> list[Target]:
    """The same for one who asks again and again, and as far as is known. Raises NotReady."""
    known = _known.setdefault(route, _Known())
    now = time.monotonic()
    if now - known.asked_at >= FRESH_SECONDS:
        known.asked_at = now  # whoever comes meanwhile takes what is known
        try:
            known.targets, known.error = await once(find_targets, route), None
        except AWAY:
            pass
        except NotReady as error:
            known.targets, known.error = [], error
    if known.error is not None:
        raise known.error
    return _balanced(known.targets, key)


def _balanced(targets: list[Target], key: str) -> list[Target]:
    """Ready primaries by what they remember and have to do; the others stay behind them."""
    primaries = [t for t in targets if t.ready and t.role == ReplicaRole.PRIMARY]
    others = [target for target in targets if target not in primaries]
    named = {str(target.index): target for target in primaries}
    loads = {name: outstanding[target.launch] for name, target in named.items()}
    return [named[name] for name in preferred(key, list(named), loads)] + others
