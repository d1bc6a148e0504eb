"""The rules that every panel starts with. Rows: they can be edited, switched off and put back."""

from typing import Any

from django.utils.translation import gettext_noop as _

from monitoring import metrics as m
from monitoring.models import Rule, Severity
from monitoring.probes.xids import GRAVE

NOTE, WARNING, CRITICAL = Severity.NOTE, Severity.WARNING, Severity.CRITICAL
GIB = 2**30


def _rule(
    key: str,
    name: str,
    kind: str,
    severity: Severity,
    threshold: float,
    clear: float,
    *,
    lasts: int = 60,
    calm: int = 60,
    above: bool = True,
    enabled: bool = True,
    **more: str,
) -> dict[str, Any]:
    return {
        "key": key,
        "name": name,
        "kind": kind,
        "severity": severity,
        "threshold": threshold,
        "clear": clear,
        "for_seconds": lasts,
        "clear_seconds": calm,
        "above": above,
        "enabled": enabled,
        "metric": "",
        "scope": "",
        "label": "",
        "price": None,
        "node": None,
        "deployment": None,
        **more,
    }


def _reading(
    key: str,
    name: str,
    metric: m.Metric,
    severity: Severity,
    threshold: float,
    clear: float,
    *,
    lasts: int = 60,
    above: bool = True,
    enabled: bool = True,
    label: str = "",
) -> dict[str, Any]:
    return _rule(
        key,
        name,
        "metric",
        severity,
        threshold,
        clear,
        lasts=lasts,
        above=above,
        enabled=enabled,
        metric=metric.name,
        label=label,
    )


BUILT_IN: tuple[dict[str, Any], ...] = (
    _rule("silent-node", _("Silent node"), "silent", CRITICAL, 15, 5, lasts=45, calm=15),
    _rule("no-data", _("A node tells nothing"), "absent", WARNING, 30, 10),
    _rule("hung-rank", _("Hung rank"), "hung", CRITICAL, 10, 2, lasts=10, calm=15),
    _rule("held-update", _("Firmware update held"), "held", CRITICAL, 1, 0, lasts=0, calm=0),
    _rule("slow-state", _("Slow state"), "slow", WARNING, 3, 1.5, lasts=120, calm=120),
    _rule(
        "low-power",
        _("Stuck at low power"),
        "low_power",
        WARNING,
        0.3,
        0.4,
        lasts=180,
        above=False,
    ),
    _reading(
        "throttled",
        _("Thermal throttling"),
        m.GPU_THROTTLED,
        WARNING,
        0.5,
        0.5,
        lasts=120,
        label="thermal",
    ),
    _reading("inlet", _("Warm inlet air"), m.INLET_TEMPERATURE, WARNING, 35, 33, lasts=120),
    _rule(
        "headroom",
        _("Little memory left"),
        "headroom",
        WARNING,
        GIB / 2,
        GIB,
        above=False,
    ),
    _reading("disk", _("Little disk space left"), m.DISK_FREE, WARNING, 5e9, 8e9, above=False),
    _rule("kv-full", _("KV cache full"), "kv_full", WARNING, 0.95, 0.9, lasts=300),
    _rule(
        "first-token",
        _("First token late"),
        "first_token",
        WARNING,
        5,
        4,
        lasts=300,
        calm=120,
    ),
    _rule(
        "token-target",
        _("Tokens slower than their target"),
        "token_target",
        WARNING,
        1.5,
        1.2,
        lasts=300,
        calm=120,
    ),
    _rule("errors", _("Requests fail"), "errors", CRITICAL, 0.05, 0.02, lasts=60, calm=120),
    _rule(
        "link-slow",
        _("Link slower than usual"),
        "unusual",
        WARNING,
        0.7,
        0.9,
        lasts=120,
        above=False,
        metric=m.LINK_SPEED.name,
    ),
    _reading("link-errors", _("Link errors"), m.LINK_ERRORS, WARNING, 0, 0, lasts=0),
    _reading(
        "xid",
        _("Accelerator fault (XID)"),
        m.GPU_XID_ERRORS,
        CRITICAL,
        0,
        0,
        lasts=0,
        label=", ".join(str(number) for number in GRAVE),
    ),
    _reading(
        "ecc",
        _("Memory errors of an accelerator"),
        m.GPU_ECC_ERRORS,
        WARNING,
        0,
        0,
        lasts=0,
        label="uncorrected",
    ),
    _reading(
        "unhealthy",
        _("Accelerator unhealthy"),
        m.GPU_HEALTH,
        CRITICAL,
        0.5,
        1,
        lasts=30,
        above=False,
    ),
    _reading(
        "staged-firmware",
        _("Firmware staged, not active"),
        m.FIRMWARE_STAGED,
        NOTE,
        0.5,
        0.5,
        lasts=86_400,
    ),
    _reading("noise", _("Louder than allowed"), m.NOISE, WARNING, 45, 43, lasts=120),
    _rule("budget", _("Over the energy budget"), "budget", NOTE, 100, 100, lasts=0, enabled=False),
    _rule("strays", _("Readings outside their partition"), "strays", WARNING, 0, 0, lasts=0),
    _rule("clock", _("Clock off"), "clock", WARNING, 2, 0.5, lasts=120, calm=120),
)
"""Noise, budget and inlet say nothing where nothing is measured; a budget needs a sum to hold."""

_BY_KEY = {values["key"]: values for values in BUILT_IN}


def seed() -> None:
    """Add what is missing. What is there, somebody may have changed."""
    known = set(Rule.objects.exclude(key=None).values_list("key", flat=True))
    Rule.objects.bulk_create(
        [Rule(**values) for values in BUILT_IN if values["key"] not in known],
        ignore_conflicts=True,
    )


def original(rule: Rule) -> dict[str, Any] | None:
    """What a built-in rule began as."""
    return _BY_KEY.get(rule.key or "")


def edited(rule: Rule) -> bool:
    values = original(rule)
    return values is not None and any(
        getattr(rule, name) != value for name, value in values.items()
    )


def reset(rule: Rule) -> None:
    for name, value in (original(rule) or {}).items():
        setattr(rule, name, value)
    rule.save()
