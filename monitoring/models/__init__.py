"""What monitoring keeps. One noun a file."""

from monitoring.models.alerts import Alert, AlertStatus, Rule, Severity
from monitoring.models.channels import Channel, ChannelKind, Delivery, DeliveryStatus, Occasion
from monitoring.models.energy import Outlay, PriceList, TariffRate
from monitoring.models.incidents import Bundle, Incident, Note
from monitoring.models.phases import RankMoment, Usual
from monitoring.models.quiet import LimitSpan, NodeLimits, QuietRule
from monitoring.models.readings import Due, Hour, Layout, Minute, Progress, Reading
from monitoring.models.silences import Maintenance, Silence
from monitoring.models.sources import NodeSource, SourceKind

__all__ = [
    "Alert",
    "AlertStatus",
    "Bundle",
    "Channel",
    "ChannelKind",
    "Delivery",
    "DeliveryStatus",
    "Due",
    "Hour",
    "Incident",
    "Layout",
    "LimitSpan",
    "Maintenance",
    "Minute",
    "NodeLimits",
    "NodeSource",
    "Note",
    "Occasion",
    "Outlay",
    "PriceList",
    "Progress",
    "QuietRule",
    "RankMoment",
    "Reading",
    "Rule",
    "Severity",
    "Silence",
    "SourceKind",
    "TariffRate",
    "Usual",
]
