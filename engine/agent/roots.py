"""Where this agent looks for hardware, as the environment says."""

import os
from collections.abc import Mapping
from pathlib import Path

from engine.errors import ConfigError
from monitoring.probes.roots import Roots

SYSFS_VARIABLE = "TANDEM_SYSFS_ROOT"
DEV_VARIABLE = "TANDEM_DEV_ROOT"
PROC_VARIABLE = "TANDEM_PROC_ROOT"


def read_roots(environment: Mapping[str, str] = os.environ) -> Roots:
    """The kernel's own folders unless others are named; raises ConfigError for what is none."""
    usual = Roots()
    return Roots(
        _folder(environment, SYSFS_VARIABLE, usual.sysfs),
        _folder(environment, DEV_VARIABLE, usual.dev),
        _folder(environment, PROC_VARIABLE, usual.proc),
    )


def _folder(environment: Mapping[str, str], variable: str, usual: Path) -> Path:
    named = environment.get(variable)
    if not named:
        return usual
    folder = Path(named)
    if not folder.is_absolute() or not folder.is_dir():
        raise ConfigError(f"{variable} is {named!r}; it must be the full path of a folder.")
    return folder
