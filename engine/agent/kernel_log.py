"""The kernel's log on this node: warnings and worse, and what NVIDIA's driver reports."""

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path

from engine.agent.logs import LogBuffer
from engine.errors import gettext_noop as _
from engine.protocol.agent import LogLines
from monitoring.probes.xids import Xids

log = logging.getLogger(__name__)

KMSG = Path("/dev/kmsg")
KEY = "kernel"
LEVELS = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
WARNING = LEVELS.index("warning")
RECORD = 8192
"""Bytes; the kernel's own longest."""
MOST_RECORDS = 200
"""Taken at a time, so that a flood of the kernel's leaves the agent its breath."""

DENIED = _("The kernel's log may only be read by root on this node.")
NO_LOG = _("This node's kernel shows no log.")


class KernelLog:
    """Follows the log from now on: what was in it before another agent has told.

    The kernel's pseudo-file gives one record a read; a pipe stands in for it in tests.
    """

    def __init__(self, xids: Xids, path: Path = KMSG) -> None:
        self._xids = xids
        self._path = path
        self._lines = LogBuffer()
        self._descriptor: int | None = None
        self._rest = b""

    def open(self) -> None:
        """Needs a running event loop. Without permission it is said once, and nothing follows."""
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            self._xids.unread = DENIED if isinstance(error, PermissionError) else NO_LOG
            log.info("%s", self._xids.unread)
            return
        with suppress(OSError):  # A pipe has no end to go to.
            os.lseek(self._descriptor, 0, os.SEEK_END)
        try:
            asyncio.get_running_loop().add_reader(self._descriptor, self._hear)
        except OSError as error:  # A file that cannot be waited for is no log.
            log.info("%s %s", NO_LOG, error)
            self._xids.unread = NO_LOG
            self.close()
            return
        self._xids.unread = ""

    def close(self) -> None:
        if self._descriptor is None:
            return
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = None

    def take(self) -> list[LogLines]:
        lines = self._lines.take()
        return [LogLines(key=KEY, launch="", lines=lines)] if lines else []

    def _hear(self) -> None:
        for _record in range(MOST_RECORDS):
            if self._descriptor is None:
                return
            try:
                data = os.read(self._descriptor, RECORD)
            except BlockingIOError:
                return
            except BrokenPipeError:  # Records were overwritten before they were read.
                self._lines.append("warning: (records of the kernel's log were lost)")
                continue
            except OSError as error:
                log.warning("The kernel's log is not read any more: %s", error)
                self._xids.unread = NO_LOG
                self.close()
                return
            if not data:
                self._xids.unread = NO_LOG
                self.close()
                return
            self._take(data)

    def _take(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            if told := parse(line.decode(errors="replace")):
                level, text = told
                if self._xids.hear(text) or level <= WARNING:
                    self._lines.append(f"{LEVELS[level]}: {text}")


def parse(line: str) -> tuple[int, str] | None:
    """Level and text of `6,339,5140900,-;text`; None for what is no first line of a record."""
    head, semicolon, text = line.partition(";")
    priority = head.partition(",")[0]
    if not semicolon or line.startswith(" ") or not priority.isdigit():
        return None
    return int(priority) & 7, text.strip()
