"""What fwupd's answers mean: devices, releases, flags. Pure; nothing of theirs is trusted."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import Said, gettext_noop, said
from engine.protocol.component_words import component_of
from engine.protocol.firmware import Part

FLAGS = {
    "internal": 1 << 0,
    "updatable": 1 << 1,
    "require-ac": 1 << 3,
    "locked": 1 << 4,
    "needs-reboot": 1 << 8,
    "needs-shutdown": 1 << 17,
    "needs-activation": 1 << 20,
    "usable-during-update": 1 << 29,
}
SHOWN_FLAGS = ("require-ac", "needs-reboot", "needs-shutdown", "usable-during-update")
AFTER_RESET = ("needs-reboot", "needs-shutdown", "needs-activation")
STATES = ("unknown", "pending", "success", "failed", "needs-reboot", "failed-transient")
URGENCIES = ("unknown", "low", "medium", "high", "critical")
PLUGINS = {
    "nvme": "drive",
    "ata": "drive",
    "scsi": "drive",
    "emmc": "drive",
    "uefi_capsule": "uefi",
    "ccgx": "pd",
    "ccgx_dmc": "pd",
    "synaptics_mst": "other",
    "tpm": "other",
    "cpu": "other",
}

NO_VERSION = gettext_noop("fwupd knows the device and not its version.")
MOST_DETAIL = 2000

Values = Mapping[str, Any]


def text(values: Values, name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def whole(values: Values, name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def texts(values: Values, name: str) -> list[str]:
    """A list, or what daemons write as one text with commas."""
    value = values.get(name)
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [part for part in value if isinstance(part, str)] if isinstance(value, list) else []


def flags_of(device: Values) -> set[str]:
    bits = whole(device, "Flags")
    return {name for name, bit in FLAGS.items() if bits & bit}


def state_of(device: Values) -> str:
    number = whole(device, "UpdateState")
    return STATES[number] if number < len(STATES) else STATES[0]


def waits_for_reset(device: Values) -> bool:
    return state_of(device) == "needs-reboot" or bool(flags_of(device) & set(AFTER_RESET))


def sha256_of(release: Values) -> str:
    """Of the archive; other sums are told beside it."""
    found = [sum_.lower() for sum_ in texts(release, "Checksum") if len(sum_) == 64]
    return found[0] if found else ""


def address_of(release: Values) -> str:
    """Where the archive lies, if it lies on the net."""
    places = [*texts(release, "Locations"), text(release, "Uri")]
    return next((place for place in places if place.startswith("https://")), "")


def part_of(device: Values, upgrades: Sequence[Values], staged: str) -> Part:
    name, flags = text(device, "Name") or "?", flags_of(device)
    version = text(device, "Version")
    guids = texts(device, "Guid")
    lowest = text(device, "VersionLowest")
    newest = upgrades[0] if upgrades else {}
    details = {
        "maker": text(device, "Vendor"),
        "flags": ", ".join(flag for flag in SHOWN_FLAGS if flag in flags),
        "guids": ", ".join(guids),
        "lowest": lowest,
        "error": text(device, "UpdateError"),
        **_offer(newest),
    }
    plugin = text(device, "Plugin")
    return Part(
        key=f"fwupd:{text(device, 'DeviceId')}"[:200],
        component=PLUGINS.get(plugin) or component_of(name, text(device, "Summary")),
        channel="fwupd",
        name=name[:120],
        model=guids[0][:120] if guids else "",
        active=version[:80],
        staged=staged[:80],
        available=text(newest, "Version")[:80],
        updatable="updatable" in flags and "locked" not in flags,
        reversible=False if lowest and lowest == version else None,
        details={key: value[:MOST_DETAIL] for key, value in details.items() if value},
        reason=Said() if version else said(NO_VERSION),
    )


def _offer(release: Values) -> dict[str, str]:
    """What the panel needs to make an image of it."""
    urgency = whole(release, "Urgency")
    return {
        "offer sha256": sha256_of(release),
        "offer address": address_of(release),
        "offer urgency": URGENCIES[urgency] if 0 < urgency < len(URGENCIES) else "",
        "offer description": text(release, "Description"),
        "offer file": text(release, "Filename"),
    }
