"""Sources that an operator has entered for a node."""

from typing import Any

import msgspec
from django.db import models
from django.utils.translation import gettext_lazy as _

from monitoring.sources import (
    DeclaredNoise,
    DeclaredPower,
    FanLawSource,
    MeterSource,
    MicrophoneSource,
    Outside,
    PduSource,
    RedfishSource,
    Source,
)
from monitoring.vault import seal, unseal

KINDS: dict[str, type[Outside]] = {
    "redfish": RedfishSource,
    "pdu": PduSource,
    "meter": MeterSource,
    "microphone": MicrophoneSource,
    "fan-law": FanLawSource,
    "declared-noise": DeclaredNoise,
    "declared-power": DeclaredPower,
}


class SourceKind(models.TextChoices):
    REDFISH = "redfish", _("BMC (Redfish)")
    PDU = "pdu", _("Metered PDU (SNMP)")
    METER = "meter", _("Sound level meter")
    MICROPHONE = "microphone", _("Microphone")
    FAN_LAW = "fan-law", _("Estimate from fan speeds")
    DECLARED_NOISE = "declared-noise", _("Declared noise")
    DECLARED_POWER = "declared-power", _("Declared power")


class NodeSource(models.Model):
    """`settings` may be shown to anybody who is signed in; what may not is in `sealed`."""

    node = models.ForeignKey("dashboard.Node", models.CASCADE, related_name="sources")
    kind = models.CharField(_("kind"), max_length=20, choices=SourceKind.choices)
    name = models.CharField(_("name"), max_length=40)
    settings = models.JSONField(default=dict)
    sealed = models.TextField(blank=True)
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["node", "name"], name="one_source_of_a_name"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def source(self) -> Source:
        """With its secrets; raises SealError when they cannot be read any more."""
        content = {**self.settings, **self.secrets, "name": self.name}
        source: Source = msgspec.convert({**content, "type": self.kind}, Source)
        return source

    @property
    def secrets(self) -> dict[str, Any]:
        return unseal(self.sealed) if self.sealed else {}

    def take(self, source: Source) -> None:
        """Everything of it, on this unsaved row."""
        content = msgspec.to_builtins(source)
        self.kind, self.name = content.pop("type"), content.pop("name")
        secrets = {name: content.pop(name) for name in source.secrets}
        self.sealed = seal(secrets) if any(secrets.values()) else ""
        self.settings = content
