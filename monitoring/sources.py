"""Readings that a node cannot take from itself: who is asked, and what is declared. No Django.

An operator enters them on the node's page; they reach the agent with its desired state. Secrets are
in memory there and nowhere else on the node.
"""

import re
from typing import ClassVar, Literal

import msgspec

SERIAL_DEVICE = re.compile(
    r"/dev/(?:[\w-][\w.:-]*/)*[\w-][\w.:-]*|socket://[\w.:\[\]-]+:\d+", re.ASCII
)
"""Other addresses would let the serial library write files or run filters."""
HID_DEVICE = re.compile(r"hid:([0-9a-fA-F]{4}):([0-9a-fA-F]{4})")


class Outside(msgspec.Struct, frozen=True, kw_only=True):
    """What every source has."""

    name: str
    """One a node, at most 40 characters."""
    secrets: ClassVar[tuple[str, ...]] = ()

    @property
    def origin(self) -> str:
        """What a reading names as its source: `redfish: bmc-1`."""
        return f"{self.__struct_config__.tag}: {self.name}"

    def __repr__(self) -> str:
        """Without the secrets: a source may stand in a traceback or a log."""
        shown = (
            f"{field}={'…' if field in self.secrets else getattr(self, field)!r}"
            for field in self.__struct_fields__
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class RedfishSource(Outside, frozen=True, kw_only=True, tag="redfish"):
    """A BMC: power, fans, temperatures, sensors."""

    secrets: ClassVar[tuple[str, ...]] = ("password",)

    url: str
    username: str
    password: str
    auth: Literal["session", "basic"] = "session"
    """Sign in once, or send the password with each request: some BMCs open no sessions."""
    ca: str = ""
    """PEM of the certificate that signed the BMC's; empty: those the system trusts."""
    fingerprint: str = ""
    """SHA-256 of the BMC's own certificate, hex; pins it instead of a CA."""
    seconds: float = 5.0
    """Between two rounds; BMCs are slow."""


class PduSource(Outside, frozen=True, kw_only=True, tag="pdu"):
    """Metered outlets, over SNMP. What several outlets feed is added up."""

    secrets: ClassVar[tuple[str, ...]] = ("community", "auth_key", "privacy_key")

    host: str
    port: int = 161
    profile: Literal["apc", "raritan", "custom"]
    outlets: tuple[int, ...] = ()
    """Empty: the whole PDU."""
    community: str = ""
    """SNMP v2c; empty for v3."""
    user: str = ""
    auth_key: str = ""
    auth_protocol: Literal["md5", "sha", "sha256", "sha512"] = "sha"
    privacy_key: str = ""
    privacy_protocol: Literal["des", "aes128", "aes256"] = "aes128"
    power_oid: str = ""
    """For `custom`: `{outlet}` stands for the outlet's number."""
    power_factor: float = 1.0
    """Watts for one unit of what `power_oid` answers."""
    energy_oid: str = ""
    energy_factor: float = 1.0
    """Joules for one unit."""
    seconds: float = 2.0


class MeterSource(Outside, frozen=True, kw_only=True, tag="meter"):
    """A sound level meter on a serial port or as a HID device."""

    device: str
    """`/dev/ttyUSB0`, `hid:VENDOR:PRODUCT` or `socket://host:port`."""
    protocol: Literal["text", "hid-gm1356"] = "text"
    """`text`: lines that hold a number, such as `LAF 41.3 dBA`."""
    baud: int = 9600
    grade: Literal["class 1", "class 2", "unknown"] = "class 2"
    position: str = "1 m"


class MicrophoneSource(Outside, frozen=True, kw_only=True, tag="microphone"):
    """A microphone with a stored calibration; levels are kept, sound is not."""

    device: str = ""
    """Empty: the one the system offers first."""
    offset_db: float | None = None
    """dB(A) shown by a reference meter minus the level of full-scale RMS = 0 dB; None: not yet."""
    calibrated: str = ""
    """The date."""
    position: str = "1 m"


class FanLawSource(Outside, frozen=True, kw_only=True, tag="fan-law"):
    """An estimate from fan speeds: one level measured once at a known speed."""

    level_dba: float | None = None
    """None: not measured yet."""
    rpm: float | None = None
    exponent: float = 50.0
    band_db: float = 5.0
    calibrated: str = ""
    """The date."""
    position: str = "1 m"


class DeclaredNoise(Outside, frozen=True, kw_only=True, tag="declared-noise"):
    """What the data sheet says (ISO 9296): no reading at all, and shown as such."""

    level_dba: float
    position: str = "1 m"


class DeclaredPower(Outside, frozen=True, kw_only=True, tag="declared-power"):
    """The host's rated draw, for boxes that nothing meters."""

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
