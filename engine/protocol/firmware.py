"""Firmware on the agent's line: what the node has, what it is to install, how that goes."""

from typing import Literal

import msgspec

from engine.errors import Said

FirmwareChannel = Literal["fwupd", "npu", "read"]
FirmwarePhase = Literal["fetching", "checking", "installing", "staged", "done", "failed"]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One component as the node reads it."""

    key: str
    component: str
    """A value of `dashboard.choices.Component`."""
    channel: FirmwareChannel
    name: str
    model: str = ""
    active: str = ""
    staged: str = ""
    available: str = ""
    updatable: bool = False
    reversible: bool | None = None
    details: dict[str, str] = {}
    reason: Said = Said()
    """Why the version is not known."""


class FirmwareOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the node is to install, until the order is gone from its desired state. Done once: an
    agent that was started again finds it in its notes."""

    id: int
    """The update's number."""
    channel: Literal["fwupd", "npu", "reboot"]
    key: str = ""
    """Of the part."""
    path: str = ""
    """On the panel, with a one-use token; the agent fetches it with its own node token too."""
    sha256: str = ""
    size: int = 0
    version: str = ""
    allow_older: bool = False


class FirmwareState(msgspec.Struct, frozen=True, kw_only=True):
    """How an order goes."""

    id: int
    phase: FirmwarePhase
    percent: float | None = None
    reason: Said = Said()
