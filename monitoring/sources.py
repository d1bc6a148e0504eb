"""Readings that a node cannot take from itself: who is asked, and what is declared. No Django.

An operator enters them on the node's page; they reach the agent with its desired state. Secrets are
in memory there and nowhere else on the node.
"""

from typing import Literal

import msgspec


class RedfishSource(msgspec.Struct, frozen=True, kw_only=True, tag="redfish"):
    """A BMC: power, fans, temperatures, sensors."""

    name: str
    url: str
    username: str
    password: str
    ca: str = ""
    """PEM of the certificate that signed the BMC's; empty: those the system trusts."""
    fingerprint: str = ""
    """SHA-256 of the BMC's own certificate, hex; pins it instead of a CA."""
    seconds: float = 5.0
    """Between two rounds; BMCs are slow."""


class PduSource(msgspec.Struct, frozen=True, kw_only=True, tag="pdu"):
    """Metered outlets, over SNMP. What several outlets feed is added up."""

    name: str
    host: str
    port: int = 161
    profile: Literal["apc", "raritan", "custom"]
    outlets: tuple[int, ...]
    community: str = ""
    """SNMP v2c; empty for v3."""
    user: str = ""
    auth_key: str = ""
    privacy_key: str = ""
    power_oid: str = ""
    """For `custom`: `{outlet}` stands for the outlet's number."""
    power_factor: float = 1.0
    """Watts for one unit of what `power_oid` answers."""
    energy_oid: str = ""
    energy_factor: float = 1.0
    """Joules for one unit."""
    seconds: float = 2.0


class MeterSource(msgspec.Struct, frozen=True, kw_only=True, tag="meter"):
    """A sound level meter on a serial port or as a HID device."""

    name: str
    device: str
    """`/dev/ttyUSB0`, `hid:VENDOR:PRODUCT` or `socket://host:port`."""
    protocol: Literal["text", "hid-wensn"] = "text"
    """`text`: lines that hold a number, such as `LAF 41.3 dBA`."""
    baud: int = 9600
    grade: Literal["class 1", "class 2", "unknown"] = "class 2"
    position: str = "1 m"


class MicrophoneSource(msgspec.Struct, frozen=True, kw_only=True, tag="microphone"):
    """A microphone with a stored calibration; levels are kept, sound is not."""

    name: str
    device: str = ""
    offset_db: float
    """dB(A) shown by a reference meter minus the level of full-scale RMS = 0 dB."""
    calibrated: str = ""
    """The date."""
    position: str = "1 m"


class FanLawSource(msgspec.Struct, frozen=True, kw_only=True, tag="fan-law"):
    """An estimate from fan speeds: one level measured once at a known speed."""

    name: str
    level_dba: float
    rpm: float
    exponent: float = 50.0
    band_db: float = 5.0
    position: str = "1 m"


class DeclaredNoise(msgspec.Struct, frozen=True, kw_only=True, tag="declared-noise"):
    """What the data sheet says (ISO 9296): no reading at all, and shown as such."""

    name: str
    level_dba: float
    position: str = "1 m"


class DeclaredPower(msgspec.Struct, frozen=True, kw_only=True, tag="declared-power"):
    """The host's rated draw, for boxes that nothing meters."""

    name: str
    watts: float


Source = (
    RedfishSource
    | PduSource
    | MeterSource
    | MicrophoneSource
    | FanLawSource
    | DeclaredNoise
    | DeclaredPower
)
