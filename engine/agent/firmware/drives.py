"""Firmware of drives, as the kernel shows it."""

from collections.abc import Iterator
from pathlib import Path

from engine.errors import Said, gettext_noop, said
from engine.protocol.firmware import Part
from monitoring.probes.roots import Roots, text_of

NOT_TOLD = gettext_noop("The kernel tells no firmware version of this drive.")


def drive_parts(roots: Roots) -> list[Part]:
    return [*_nvme(roots), *_scsi(roots)]


def _nvme(roots: Roots) -> Iterator[Part]:
    for folder in sorted((roots.sysfs / "class/nvme").glob("nvme*")):
        yield _part(folder.name, folder, "firmware_rev")


def _scsi(roots: Roots) -> Iterator[Part]:
    for folder in sorted((roots.sysfs / "block").glob("sd*/device")):
        yield _part(folder.parent.name, folder, "rev")


def _part(name: str, folder: Path, file: str) -> Part:
    version, model = text_of(folder / file) or "", text_of(folder / "model") or ""
    return Part(
        key=f"read:drive:{name}",
        component="drive",
        channel="read",
        name=f"{model} ({name})" if model else name,
        model=model,
        active=version[:80],
        reason=Said() if version else said(NOT_TOLD),
    )
