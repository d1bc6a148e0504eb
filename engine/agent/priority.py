"""Spares take what processor time is left over, and a fair share from when they are needed.

A nice value counts inside a session only where the kernel groups processes by session
(`sched_autogroup_enabled`); there the group has one of its own.
"""

import asyncio
import contextlib
import os
import resource
from pathlib import Path

from engine.agent.child import Child

LOW = 3
GROUP_PAUSE = 0.2
"""The kernel lets an ordinary user change groups only ten times a second."""


def lower(child: Child) -> None:
    if child.pid is None:
        return
    _set_group(child.pid, LOW)
    if _may_raise():
        _set_threads(child.pid, os.getpriority(os.PRIO_PROCESS, 0) + LOW)


def restore(child: Child) -> None:
    if child.pid is None:
        return
    if not _set_group(child.pid, 0):
        asyncio.get_running_loop().call_later(GROUP_PAUSE, _set_group, child.pid, 0)
    if _may_raise():
        _set_threads(child.pid, os.getpriority(os.PRIO_PROCESS, 0))


def _set_group(pid: int, value: int) -> bool:
    try:
        Path(f"/proc/{pid}/autogroup").write_text(str(value))
    except BlockingIOError:
        return False
    except OSError:  # No such groups here, or the process has gone.
        return True
    return True


def _set_threads(pid: int, value: int) -> None:
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), value)


def _may_raise() -> bool:
    """Lowering could not be undone otherwise."""
    return os.geteuid() == 0 or resource.getrlimit(resource.RLIMIT_NICE)[0] >= 20
