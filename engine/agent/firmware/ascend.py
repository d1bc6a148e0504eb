"""Ascend's firmware through `npu-smi upgrade`: what there is, and putting another in its place."""

import asyncio
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from engine.agent.firmware.errors import FirmwareError
from engine.errors import Said, gettext_noop, said
from engine.protocol.firmware import Part
from monitoring.probes.ascend import parse
from monitoring.probes.command import ToolError, run

TOOL = "npu-smi"
ITEMS = ("mcu", "bootloader")
"""What takes a file; the voltage regulators' firmware comes with the driver."""
UPGRADE_SECONDS = 1800.0
POLL_SECONDS = 0.2
MOST_OUTPUT = 64 * 1024

NOT_TOLD = gettext_noop("npu-smi does not tell this firmware's version.")
NO_TOOL = gettext_noop("npu-smi is not installed on this node.")
STRANGE_KEY = gettext_noop("%(key)s is no component that npu-smi can update.")
SLOW = gettext_noop("npu-smi has not ended within %(minutes)s minutes.")
FAILED = gettext_noop("npu-smi failed; its last words: %(words)s")

Tool = Callable[[Sequence[str]], str]
Progress = Callable[[float], None]


def npu_parts(tool: Tool = run) -> list[Part]:
    """Of every card; nothing where the tool is not installed."""
    if shutil.which(TOOL) is None:
        return []
    try:
        chips = parse(tool([TOOL, "info"])).chips
    except ToolError as error:
        return [_part(0, "mcu", "", "", said(error.reason))]
    cards = {chip.card: chip.name for chip in reversed(chips)}
    return [_ask(card, item, cards[card], tool) for card in sorted(cards) for item in ITEMS]


def _ask(card: int, item: str, model: str, tool: Tool) -> Part:
    try:
        version = version_in(tool([TOOL, "upgrade", "-b", item, "-i", str(card)]))
    except ToolError as error:
        return _part(card, item, model, "", said(error.reason))
    return _part(card, item, model, version, Said() if version else said(NOT_TOLD))


def _part(card: int, item: str, model: str, version: str, reason: Said) -> Part:
    return Part(
        key=f"npu:{card}:{item}",
        component="gpu",
        channel="npu",
        name=f"NPU {card} {item}",
        model=model,
        active=version[:80],
        updatable=bool(version),
        reason=reason,
    )


def version_in(text: str) -> str:
    found = re.search(r"^\s*Version\s*:\s*(\S+)", text, re.MULTILINE)
    return found[1] if found else ""


class NpuSmi:
    """One update at a time. The tool is never killed and outlives the agent: ended in the middle
    of its work it could leave the device without firmware."""

    def __init__(self, folder: Path, seconds: float = UPGRADE_SECONDS) -> None:
        self._output = folder / "npu-smi.out"
        self._seconds = seconds

    async def install(self, key: str, file: Path, progress: Progress) -> str:
        """Write the file and have it activated; answers the version that runs then. Raises
        FirmwareError."""
        card, item = place_of(key)
        told = await self._run(["-t", item, "-i", card, "-f", str(file)], progress)
        if re.search(r"need active", told, re.IGNORECASE):
            await self._run(["-a", item, "-i", card], progress)
        return await self.version(key)

    async def version(self, key: str) -> str:
        card, item = place_of(key)
        return version_in(await self._run(["-b", item, "-i", card], lambda _percent: None))

    async def settle(self, key: str) -> str:
        """After a restart of the agent: once no update runs any more, the version there is."""
        ends = time.monotonic() + self._seconds
        while upgrading():
            if time.monotonic() > ends:
                raise FirmwareError(SLOW, minutes=round(self._seconds / 60))
            await asyncio.sleep(POLL_SECONDS)
        return await self.version(key)

    async def _run(self, arguments: Sequence[str], progress: Progress) -> str:
        try:
            with self._output.open("wb") as output:
                process = subprocess.Popen(
                    [TOOL, "upgrade", *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except FileNotFoundError as error:
            raise FirmwareError(NO_TOOL) from error
        except OSError as error:
            raise FirmwareError(FAILED, words=str(error)) from error
        ends = time.monotonic() + self._seconds
        while process.poll() is None:
            if time.monotonic() > ends:
                raise FirmwareError(SLOW, minutes=round(self._seconds / 60))
            self._tell(progress)
            await asyncio.sleep(POLL_SECONDS)
        text = self._text()
        if process.returncode or re.search(r"Status\s*:\s*(fail|error)", text, re.IGNORECASE):
            raise FirmwareError(FAILED, words=_last_words(text))
        return text

    def _tell(self, progress: Progress) -> None:
        if percents := re.findall(r"\[(\d{1,3})\]", self._text()):
            progress(min(100.0, float(percents[-1])))

    def _text(self) -> str:
        with self._output.open("rb") as output:
            return output.read(MOST_OUTPUT).decode(errors="replace")


def upgrading() -> bool:
    """Whether a tool of before is at work still."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(Path(word).name == TOOL for word in words[:2]) and "upgrade" in words:
            return True
    return False


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "-"


def place_of(key: str) -> tuple[str, str]:
    """Card and item; raises FirmwareError for a key that is none of ours."""
    found = re.fullmatch(rf"npu:(\d{{1,3}}):({'|'.join(ITEMS)})", key)
    if found is None:
        raise FirmwareError(STRANGE_KEY, key=key)
    return found[1], found[2]
