"""The machine's own firmware and kernel, and which start of the machine this is."""

import platform

from engine.errors import Said, gettext_noop, said
from engine.protocol.firmware import Part
from monitoring.probes.roots import Roots, text_of

NO_DMI = gettext_noop("This machine's kernel shows no DMI table.")
NOT_TOLD = gettext_noop("The machine's DMI table does not tell it.")


def boot_id(roots: Roots) -> str:
    """Another one after each start of the machine; empty where the system tells none."""
    return text_of(roots.proc / "sys/kernel/random/boot_id") or ""


def system_parts(roots: Roots) -> list[Part]:
    return [*_dmi(roots), _kernel()]


def _dmi(roots: Roots) -> list[Part]:
    folder = roots.sysfs / "class/dmi/id"
    version = text_of(folder / "bios_version") or ""
    maker = text_of(folder / "bios_vendor") or ""
    details = {
        "maker": maker,
        "released": text_of(folder / "bios_date") or "",
        "board": text_of(folder / "board_name") or "",
    }
    model = text_of(folder / "product_name") or ""
    told = {name: value for name, value in details.items() if value}
    reason = Said() if version else said(NOT_TOLD if folder.is_dir() else NO_DMI)
    found = [
        Part(
            key="read:uefi",
            component="uefi",
            channel="read",
            name="UEFI/BIOS",
            model=model,
            active=version[:80],
            details=told,
            reason=reason,
        )
    ]
    if release := text_of(folder / "ec_firmware_release"):
        found.append(
            Part(
                key="read:ec",
                component="ec",
                channel="read",
                name="Embedded controller",
                model=model,
                active=release[:80],
            )
        )
    return found


def _kernel() -> Part:
    return Part(
        key="read:kernel",
        component="kernel",
        channel="read",
        name=platform.system(),
        model=platform.machine(),
        active=platform.release()[:80],
        details={"build": platform.version()},
    )
