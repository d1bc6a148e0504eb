"""What a message says, in the channel's language. Kept as JSON until it is delivered."""

from datetime import datetime
from typing import Any

import msgspec
from django.utils.translation import gettext, override
from django.utils.translation import gettext as _

from monitoring import wishes
from monitoring.models import Alert, AlertStatus, Incident, Occasion, Severity

MOST_LINES = 10


class Message(msgspec.Struct, frozen=True, kw_only=True):
    occasion: str
    severity: str
    title: str
    lines: list[str]
    incident: int | None
    about: str
    opened: str
    """ISO 8601, as is the next."""
    at: str
    closed: str | None = None
    url: str = ""
    """Empty where the panel does not know under which address it is reached."""
    simulated: bool = False

    @property
    def text(self) -> str:
        """Title and lines, for receivers without markup."""
        return "\n".join([self.title, *self.lines, *([self.url] if self.url else [])])


def compose(incident: Incident, occasion: Occasion, language: str, now: datetime) -> dict[str, Any]:
    with override(language):
        severity, name = _what(incident, occasion)
        message = Message(
            occasion=str(occasion),
            severity=str(severity),
            title=_title(incident, occasion, severity, name),
            lines=_lines(incident, occasion),
            incident=incident.pk,
            about=incident.about,
            opened=incident.opened.isoformat(),
            closed=incident.closed.isoformat() if incident.closed else None,
            at=now.isoformat(),
            url=link(f"/monitor/incidents/{incident.pk}/"),
            simulated=incident.simulated,
        )
    content: dict[str, Any] = msgspec.to_builtins(message)
    return content


def trial(channel: str, language: str, now: datetime) -> dict[str, Any]:
    with override(language):
        message = Message(
            occasion=str(Occasion.TEST),
            severity=str(Severity.NOTE),
            title=_("[Test] Tandem can reach you"),
            lines=[
                _("This is what a message of the channel “%(name)s” looks like.")
                % {"name": channel}
            ],
            incident=None,
            about="",
            opened=now.isoformat(),
            at=now.isoformat(),
            url=link("/monitor/alerts/"),
        )
    content: dict[str, Any] = msgspec.to_builtins(message)
    return content


def read(content: dict[str, Any]) -> Message:
    return msgspec.convert(content, Message)


def link(path: str) -> str:
    base = wishes.current().public_url()
    return f"{base}{path}" if base else ""


def _what(incident: Incident, occasion: Occasion) -> tuple[Severity, str]:
    """How grave it is and what: while it goes on, of what fires now; at its end, all in all."""
    if occasion != Occasion.RESOLVED:
        firing = incident.alerts.filter(status=AlertStatus.FIRING, hushed=False)
        alerts = sorted(firing.order_by("fired", "pk"), key=lambda a: -Severity(a.severity).rank)
        if alerts:
            name = gettext(alerts[0].rule_name)
            name = f"{name} · {incident.about}" if incident.about else name
            return Severity(alerts[0].severity), name
    return Severity(incident.severity), str(incident)


def _title(incident: Incident, occasion: Occasion, severity: Severity, name: str) -> str:
    parts = {"severity": severity.label, "incident": name}
    title = _of_occasion(occasion) % parts
    return _("[Simulated] %(title)s") % {"title": title} if incident.simulated else title


def _of_occasion(occasion: Occasion) -> str:
    if occasion == Occasion.RESOLVED:
        return _("[Over] %(incident)s")
    if occasion == Occasion.STILL:
        return _("[%(severity)s, still] %(incident)s")
    if occasion == Occasion.WORSE:
        return _("[%(severity)s, worse] %(incident)s")
    return _("[%(severity)s] %(incident)s")


def _lines(incident: Incident, occasion: Occasion) -> list[str]:
    alerts = incident.alerts.select_related("node", "deployment").order_by("fired", "pk")
    if occasion != Occasion.RESOLVED:
        alerts = alerts.filter(status=AlertStatus.FIRING)
    found = list(alerts[: MOST_LINES + 1])
    lines = [_line(alert) for alert in found[:MOST_LINES]]
    if len(found) > MOST_LINES:
        lines.append(_("and more"))
    return lines


def _line(alert: Alert) -> str:
    parts = {"alert": alert.text, "value": alert.value_text, "threshold": alert.threshold_text}
    if alert.resolved:
        return _("%(alert)s: over") % parts
    if not alert.value_text:
        return _("%(alert)s: %(why)s") % (parts | {"why": alert.why or "—"})
    return _("%(alert)s: %(value)s (limit %(threshold)s)") % parts
