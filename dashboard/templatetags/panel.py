"""What every page draws: icons, status badges, honest absence, times and large numbers."""

from collections.abc import Iterator
from datetime import datetime
from typing import cast

from django import template
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils.formats import number_format
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from dashboard.choices import Role
from dashboard.ledger import Ledger
from dashboard.models import Node, Replica
from dashboard.views.access import may_operate
from dashboard.views.live import replica_name
from dashboard.views.monitor.urls import TABS
from dashboard.views.settings.tabs import TABS as SETTINGS_TABS

register = template.Library()

TONES: dict[str, tuple[str, str]] = {
    "online": ("ok", "ok"),
    "ready": ("ok", "ok"),
    "done": ("ok", "ok"),
    "pending": ("quiet", "wait"),
    "queued": ("quiet", "wait"),
    "waiting": ("quiet", "wait"),
    "stopped": ("quiet", "off"),
    "cancelled": ("quiet", "off"),
    "exited": ("quiet", "off"),
    "skipped": ("quiet", "skip"),
    "starting": ("busy", "spin"),
    "loading": ("busy", "spin"),
    "running": ("busy", "spin"),
    "restarting": ("busy", "spin"),
    "recovering": ("busy", "spin"),
    "degraded": ("warn", "warn"),
    "draft": ("quiet", "wait"),
    "verified": ("quiet", "ok"),
    "approved": ("busy", "wait"),
    "precheck": ("busy", "spin"),
    "uploading": ("busy", "spin"),
    "applying": ("busy", "spin"),
    "awaiting-reset": ("warn", "wait"),
    "rebooting": ("busy", "spin"),
    "validating": ("busy", "spin"),
    "released": ("ok", "ok"),
    "held": ("bad", "bad"),
    "proposed": ("quiet", "wait"),
    "current": ("ok", "ok"),
    "past": ("quiet", "skip"),
    "stopping": ("busy", "spin"),
    "streaming": ("busy", "spin"),
    "offline": ("bad", "bad"),
    "failed": ("bad", "bad"),
    "info": ("quiet", "info"),
    "warning": ("warn", "warn"),
    "error": ("bad", "bad"),
    "critical": ("bad", "bad"),
    "note": ("quiet", "info"),
    "firing": ("bad", "warn"),
    "resolved": ("ok", "ok"),
    "sent": ("ok", "ok"),
}
"""Status value -> (tone, icon): a badge never speaks by colour alone."""

SCALES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))


@register.simple_tag
def icon(name: str, css: str = "") -> SafeString:
    return format_html(
        '<svg class="icon {}" aria-hidden="true"><use href="{}#{}"></use></svg>',
        css,
        static("icons.svg"),
        name,
    )


@register.simple_tag
def badge(status: str, label: str) -> SafeString:
    tone, symbol = TONES.get(status, ("quiet", "info"))
    spin = "spin" if symbol == "spin" else ""
    return format_html(
        '<span class="badge badge-{}" data-status="{}">{}{}</span>',
        tone,
        status,
        icon(symbol, spin),
        label,
    )


def _simulated() -> SafeString:
    title = _("Its readings are made up by a simulator.")
    return format_html(
        '<span class="badge badge-simulated" title="{}">{}{}</span>',
        title,
        icon("simulated"),
        _("simulated"),
    )


@register.simple_tag
def simulated_mark() -> SafeString:
    """On what is known to be of made-up readings."""
    return _simulated()


@register.simple_tag
def simulated_badge(node: Node) -> SafeString | str:
    """On everything that shows a node whose readings are made up; empty for a real one."""
    return _simulated() if node.simulated else ""


@register.simple_tag
def simulated_books(ledger: Ledger) -> SafeString | str:
    """On sums that are made of nothing but made-up readings, or a word on what they leave out."""
    if ledger.simulated:
        return _simulated()
    if not ledger.left_out:
        return ""
    words = _("Simulated nodes are left out.")
    return format_html('<span class="card-note">{}</span>', words)


@register.simple_tag
def simulated_scope(scope: str, pk: int | None = None) -> SafeString | str:
    """The same for charts: whether anything in their scope is made up."""
    nodes = Node.objects.filter(inventory__simulated=True)
    if pk is None:
        return _simulated() if nodes.exists() else ""
    if scope == "node":
        nodes = nodes.filter(pk__in=[pk])
    elif scope == "deployment":
        nodes = nodes.filter(ranks__replica__deployment=pk, ranks__replica__ended_at=None)
    return _simulated() if nodes.exists() else ""


@register.simple_tag(name="replica_name")
def show_replica_name(replica: Replica) -> str:
    return replica_name(replica)


@register.simple_tag
def absent(reason: str = "") -> SafeString:
    """A value nobody knows is a dash with its reason, never a zero."""
    why = reason or _("Not known yet")
    return format_html(
        '<span class="absent" title="{}">—<span class="visually-hidden"> {}</span></span>', why, why
    )


@register.filter
def code(text: str) -> SafeString:
    """What stands between backticks, such as the name of a field, as code."""
    plain, *rest = str(text).split("`")
    if len(rest) % 2:
        return conditional_escape(text)
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return format_html("{}{}", plain, format_html_join("", "<code>{}</code>{}", pairs))


@register.simple_tag
def moment(at: datetime | None, mode: str = "ago", reason: str = "") -> SafeString:
    """`mode`: ago ("3 minutes ago"), elapsed or left (a duration that moves), clock."""
    if at is None:
        return absent(reason)
    return format_html(
        '<live-time datetime="{}" mode="{}">{}</live-time>',
        at.isoformat(),
        mode,
        at.strftime("%Y-%m-%d %H:%M:%S UTC"),
    )


@register.simple_tag
def duration(start: datetime | None, end: datetime | None, reason: str = "") -> SafeString | str:
    if start is None:
        return absent(reason)
    if end is None:
        return moment(start, "elapsed")
    return seconds((end - start).total_seconds())


@register.filter
def seconds(value: float) -> str:
    if value < 60:
        return _("%(value)s s") % {"value": number_format(round(value, 1), 1)}
    minutes, rest = divmod(round(value), 60)
    return _("%(minutes)s min %(seconds)s s") % {"minutes": minutes, "seconds": rest}


@register.filter
def milliseconds(value: float) -> str:
    thousandths = value * 1000
    digits = 1 if thousandths < 10 else 0
    return f"{number_format(round(thousandths, digits), digits)} ms"


@register.filter
def compact(value: int | None) -> SafeString | str:
    """1 234 567 -> 1.2M, the way model sizes are spoken of."""
    if value is None:
        return absent()
    for scale, letter in SCALES:
        if abs(value) >= scale:
            digits = 0 if value % scale == 0 or value >= 100 * scale else 1
            return f"{number_format(round(value / scale, digits), digits)}{letter}"
    return number_format(value)


@register.filter
def size(value: int | None) -> SafeString | str:
    """Bytes of files and weights, in powers of ten as model sizes are."""
    if value is None:
        return absent()
    for scale, unit in ((1e9, "GB"), (1e6, "MB")):
        if value >= scale:
            digits = 1 if value < 10 * scale else 0
            return f"{number_format(round(value / scale, digits), digits)} {unit}"
    return f"{number_format(round(value / 1e3))} kB"


@register.filter
def memory(value: int) -> str:
    """Bytes of main memory, in powers of two as memory is sold."""
    return f"{number_format(round(value / 2**30, 1), 1)} GiB"


@register.filter
def percent(value: float | None) -> SafeString | str:
    """A ratio 0..1 as whole percent."""
    return absent() if value is None else f"{round(value * 100)}%"


@register.inclusion_tag("monitor/_tabs.html", takes_context=True)
def monitor_tabs(context: dict[str, object]) -> dict[str, object]:
    """The pages under Monitor; the one that is shown is marked."""
    request = cast(HttpRequest, context["request"])
    first = reverse(TABS[0][0])
    return {
        "tabs": [
            {
                "url": (url := reverse(name)),
                "label": label,
                "current": request.path == url or (url != first and request.path.startswith(url)),
            }
            for name, label in TABS
        ]
    }


@register.inclusion_tag("settings/_tabs.html", takes_context=True)
def settings_tabs(context: dict[str, object]) -> dict[str, object]:
    """The pages under Settings that the reader may open; the one that is shown is marked."""
    request = cast(HttpRequest, context["request"])
    return {"tabs": list(_settings_tabs(request))}


def _settings_tabs(request: HttpRequest) -> Iterator[dict[str, object]]:
    first = reverse(SETTINGS_TABS[0][0])
    for name, label, role in SETTINGS_TABS:
        try:
            url = reverse(name)
        except NoReverseMatch:
            continue
        if not _may(request, role):
            continue
        current = request.path == url or (url != first and request.path.startswith(url))
        yield {"url": url, "label": label, "current": current}


def _may(request: HttpRequest, role: Role) -> bool:
    if role == Role.ADMIN:
        return bool(request.user.is_active and request.user.is_superuser)
    return role != Role.OPERATOR or may_operate(request)
