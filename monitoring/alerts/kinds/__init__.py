"""What rules can watch. A kind finds its values; threshold, times and severity are the rule's."""

from dataclasses import dataclass
from typing import Literal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from monitoring.alerts.kinds import boxes, engines, fleet, readings
from monitoring.alerts.world import Watch
from monitoring.metrics import FIRST_TOKEN_BUCKET, INTER_TOKEN_BUCKET, REQUESTS_FINISHED

About = Literal["node", "deployment", "both", "fleet"]


@dataclass(frozen=True)
class Kind:
    name: str
    title: str | Promise
    explained: str | Promise
    unit: str
    """Of its value; empty where the metric decides."""
    watch: Watch
    about: About
    above: bool | None = True
    """Which side of the threshold is bad; None where the rule decides."""
    uses: tuple[str, ...] = ()
    """Fields of the rule that only some kinds look at."""


_ALL = (
    Kind(
        "metric",
        _("A reading"),
        _("Any metric, as it is now; of a counter, what it grew by in the last 5 minutes."),
        "",
        readings.metric,
        "both",
        None,
        ("metric", "scope", "label"),
    ),
    Kind(
        "unusual",
        _("A reading, against what is usual"),
        _("How many times its median of the last 24 hours a reading is. Needs some hours of data."),
        "times",
        readings.unusual,
        "both",
        None,
        ("metric", "scope", "label"),
    ),
    Kind(
        "absent",
        _("No data"),
        _("How long an online node, or one metric of it, has not been read."),
        "seconds",
        readings.absent,
        "both",
        uses=("metric",),
    ),
    Kind(
        "silent",
        _("Silent node"),
        _("How long nothing has been heard from a node’s agent."),
        "seconds",
        boxes.silent,
        "node",
    ),
    Kind(
        "held",
        _("Held firmware update"),
        _("How long a firmware update that failed has kept a node out of service."),
        "seconds",
        boxes.held,
        "node",
    ),
    Kind(
        "headroom",
        _("Memory headroom"),
        _("What a host could still give, above the floor that engines leave free."),
        "bytes",
        boxes.headroom,
        "node",
        False,
    ),
    Kind(
        "clock",
        _("Clock skew"),
        _("How far a node’s clock is from the panel’s, either way."),
        "seconds",
        boxes.clock,
        "node",
    ),
    Kind(
        "low_power",
        _("Stuck at low power"),
        _(
            "An accelerator’s power while answers are being written on its box, as a share of its "
            "limit, or else of the most it drew in the last 24 hours."
        ),
        "ratio",
        boxes.low_power,
        "node",
        False,
    ),
    Kind(
        "hung",
        _("Hung rank"),
        _(
            "How long an engine with work in hand has got nothing done, or a rank of a running "
            "engine has said nothing."
        ),
        "seconds",
        engines.hung,
        "deployment",
    ),
    Kind(
        "slow",
        _("Slow state"),
        _("A rank’s time per step, as a multiple of its median of the last 24 hours."),
        "times",
        engines.slow,
        "deployment",
    ),
    Kind(
        "kv_full",
        _("Full cache"),
        _("How full the KV cache is while requests wait."),
        "ratio",
        engines.cache_full,
        "deployment",
    ),
    Kind(
        "first_token",
        _("Time to first token"),
        _("The 95th percentile over all requests of the last 5 minutes."),
        "seconds",
        engines.first_token,
        "deployment",
    ),
    Kind(
        "token_target",
        _("Time per token against its target"),
        _(
            "The 95th percentile over the last 5 minutes, as a multiple of the deployment’s target "
            "time per token."
        ),
        "times",
        engines.token_target,
        "deployment",
    ),
    Kind(
        "errors",
        _("Error rate"),
        _("The share of requests of the last 5 minutes that ended in an error, of at least 5."),
        "ratio",
        engines.errors,
        "deployment",
    ),
    Kind(
        "budget",
        _("Energy budget"),
        _("What the energy of this calendar month has cost so far."),
        "",
        fleet.budget,
        "fleet",
        uses=("price",),
    ),
    Kind(
        "strays",
        _("Readings outside their partition"),
        _("Rows in a default partition: partitions are no longer made ahead, or a clock is wrong."),
        "rows",
        fleet.strays,
        "fleet",
    ),
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}

GROWTH: dict[str, str] = {
    "first_token": FIRST_TOKEN_BUCKET.name,
    "token_target": INTER_TOKEN_BUCKET.name,
    "errors": REQUESTS_FINISHED.name,
}
"""The counter whose growth a kind of rule looks at."""
