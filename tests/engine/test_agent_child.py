"""What an agent sees of a keeper that goes."""

import asyncio
import os
import socket
from pathlib import Path
from typing import NoReturn

import pytest

from engine.agent.child import LOST, Child


async def test_a_lost_keeper_is_an_end_even_where_the_disk_cannot_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(30, "Read-only file system")

    line, other = socket.socketpair()
    child = Child(line, os.getpid(), tmp_path / "a.keeper")
    monkeypatch.setattr(Path, "unlink", refuse)
    other.close()
    async with asyncio.timeout(5):
        await child.ended.wait()
    assert child.code == LOST
