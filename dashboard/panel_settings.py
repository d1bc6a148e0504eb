"""The panel's own settings as they are in effect."""

import os
import threading
import time
from collections.abc import Mapping

from dashboard.choices import RevisionState
from dashboard.configuration.declared import Setting, SettingError, Value
from dashboard.configuration.panel import PANEL, VARIABLES
from dashboard.models import Revision

TRUSTED_SECONDS = 5.0
"""How long a process goes by what it read last."""

_lock = threading.Lock()
_read: tuple[float, Mapping[str, Value]] | None = None


def current() -> Mapping[str, Value]:
    """Every declared setting with the value in effect; environment variables win."""
    global _read
    with _lock:
        if _read is not None and time.monotonic() - _read[0] < TRUSTED_SECONDS:
            return _read[1]
    values = in_effect()
    with _lock:
        _read = time.monotonic(), values
    return values


def in_effect() -> Mapping[str, Value]:
    """The same, read this moment."""
    values = PANEL.complete(kept())
    for name in overridden():
        values[name] = _from_environment(PANEL[name])
    return values


def overridden() -> dict[str, str]:
    """Settings that an environment variable decides, and its name."""
    return {
        name: variable
        for name, variable in VARIABLES.items()
        if name in PANEL and os.environ.get(variable, "").strip()
    }


def kept() -> Mapping[str, Value]:
    """What was entered in the panel, whatever the environment says."""
    revision = in_use()
    return revision.values if revision else {}


def in_use() -> Revision | None:
    return (
        Revision.objects.filter(deployment=None, node=None, state=RevisionState.CURRENT)
        .order_by("-number")
        .first()
    )


def forget() -> None:
    """Read them anew next time: something changed."""
    global _read
    with _lock:
        _read = None


def _from_environment(setting: Setting) -> Value:
    """None where the variable holds what no setting may: a secret itself."""
    if setting.secret:
        return None
    try:
        return setting.check(os.environ[VARIABLES[setting.name]].strip())
    except SettingError:
        return setting.default  # A malformed one has stopped the start already (`dashboard.env`).
