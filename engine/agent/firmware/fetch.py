"""An image from the panel, or an archive from where fwupd says it lies: checked, then used."""

import asyncio
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from engine.agent.firmware.errors import FirmwareError
from engine.errors import gettext_noop, system_words

WHOLE_SECONDS = 3600.0
PAUSE_SECONDS = 60.0
"""Longest silence in the middle."""
CONNECT_SECONDS = 20.0
CHUNK = 1 << 18
MOST_BYTES = 4 << 30
"""Of an archive whose size nobody told."""
SPARE_BYTES = 64 << 20
TRIES = 5

NO_SPACE = gettext_noop("The node's disk has no room for the image.")
ANSWERED = gettext_noop("The image cannot be fetched: its place answers with status %(status)s.")
BROKEN = gettext_noop("The image cannot be fetched: %(reason)s")
SLOW = gettext_noop("The image was not fetched within %(minutes)s minutes.")
WRONG_SIZE = gettext_noop("The fetched image has %(size)s bytes; it should have %(expected)s.")
WRONG_SUM = gettext_noop(
    "The fetched image's SHA-256 is %(sum)s; it should be %(expected)s. It was not used."
)
UNWRITABLE = gettext_noop("The image cannot be written on the node: %(reason)s.")
NO_PANEL_ADDRESS = gettext_noop("The panel names another host to fetch from, which is refused.")

Progress = Callable[[float], None]


def address_on(server: str, path: str) -> str:
    """The order's path on the panel itself; raises FirmwareError for anything else."""
    parts = urlsplit(server)
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    if not path.startswith("/") or path.startswith("//") or "\\" in path:
        raise FirmwareError(NO_PANEL_ADDRESS)
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}{path}"


async def fetch(
    url: str, target: Path, *, sha256: str, size: int, token: str, progress: Progress
) -> None:
    """The whole file at `target`, or nothing there and a FirmwareError. Goes on where it broke."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if shutil.disk_usage(target.parent).free < size + SPARE_BYTES:
        raise FirmwareError(NO_SPACE)
    try:
        async with asyncio.timeout(WHOLE_SECONDS):
            await _whole(url, target, size or MOST_BYTES, token, progress)
        await asyncio.to_thread(check, target, sha256, size)
    except TimeoutError as error:
        raise FirmwareError(SLOW, minutes=round(WHOLE_SECONDS / 60)) from error
    except OSError as error:
        raise FirmwareError(UNWRITABLE, reason=system_words(error)) from error


async def _whole(url: str, target: Path, size: int, token: str, progress: Progress) -> None:
    limits = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=PAUSE_SECONDS)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    target.unlink(missing_ok=True)
    async with aiohttp.ClientSession(timeout=limits, trust_env=False, headers=headers) as session:
        for left in reversed(range(TRIES)):
            try:
                await _go_on(session, url, target, size, progress)
            except (aiohttp.ClientError, TimeoutError) as error:
                if not left:
                    raise FirmwareError(BROKEN, reason=str(error) or "timed out") from error
                await asyncio.sleep(0.5)
            else:
                return


async def _go_on(
    session: aiohttp.ClientSession, url: str, target: Path, size: int, progress: Progress
) -> None:
    have = target.stat().st_size if target.exists() else 0
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"} if have else {}
    async with session.get(url, headers=headers, allow_redirects=False) as response:
        if response.status not in (200, 206):
            raise FirmwareError(ANSWERED, status=response.status)
        if response.status == 200:
            have = 0
        with target.open("ab" if have else "wb") as file:
            async for chunk in response.content.iter_chunked(CHUNK):
                have += len(chunk)
                if have > size:
                    raise FirmwareError(WRONG_SIZE, size=f"> {size}", expected=size)
                await asyncio.to_thread(file.write, chunk)
                progress(100.0 * have / size)


def check(target: Path, sha256: str, size: int) -> None:
    """Raises FirmwareError, and removes what is not what it should be."""
    with target.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    length = target.stat().st_size
    if size and length != size:
        target.unlink()
        raise FirmwareError(WRONG_SIZE, size=length, expected=size)
    if found != sha256:
        target.unlink()
        raise FirmwareError(WRONG_SUM, sum=found, expected=sha256)
