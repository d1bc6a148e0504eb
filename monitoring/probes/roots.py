"""Where the kernel shows its hardware; a folder made by hand can stand in for it."""

import math
from pathlib import Path
from typing import NamedTuple


class Roots(NamedTuple):
    sysfs: Path = Path("/sys")
    dev: Path = Path("/dev")
    proc: Path = Path("/proc")

    def hwmon(self) -> list[Path]:
        return _by_number(self.sysfs / "class/hwmon", "hwmon")

    def thermal_zones(self) -> list[Path]:
        return _by_number(self.sysfs / "class/thermal", "thermal_zone")

    @property
    def powercap(self) -> Path:
        return self.sysfs / "class/powercap"

    def interface(self, name: str) -> Path:
        return self.sysfs / "class/net" / name


def _by_number(folder: Path, prefix: str) -> list[Path]:
    """`hwmon2` before `hwmon10`."""
    found = [path for path in folder.glob(f"{prefix}*") if path.name[len(prefix) :].isdigit()]
    return sorted(found, key=lambda path: int(path.name[len(prefix) :]))


def text_of(path: Path | str) -> str | None:
    """A kernel file's text; None where it is missing or its driver cannot read it just now."""
    try:
        with open(path, "rb", buffering=0) as file:
            return (file.read(1 << 16) or b"").decode(errors="replace").strip()
    except OSError:
        return None


def number_of(path: Path | str) -> float | None:
    """A kernel file's number; None as above, or where it holds none."""
    try:
        number = float(text_of(path) or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None
