"""What both embedded servers share: children that die with their parent, bounded waits, sockets."""

import ctypes
import hashlib
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

MAX_SOCKET_PATH = 100
"""A unix socket's path may have 107 bytes; what a server appends fits in the rest."""
_PR_SET_PDEATHSIG = 1


class EmbeddedError(RuntimeError):
    """An embedded server cannot start or stop; the message says why."""


def die_with_parent(signum: signal.Signals) -> Callable[[], None]:
    """A preexec function: the kernel signals the child when its parent ends, however it ends."""
    if not sys.platform.startswith("linux"):
        return lambda: None
    libc = ctypes.CDLL(None, use_errno=True)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signum) and None


def socket_dir(state: Path, suffix: str = "", owner: int | None = None) -> Path:
    """`state`/run, or a short private folder elsewhere when that path is too long for a socket.

    It belongs to us, or to `owner`. Raises EmbeddedError when somebody else made it.
    """
    folder = state / f"run{suffix}"
    if len(str(folder)) > MAX_SOCKET_PATH - len("/valkey.sock"):
        digest = hashlib.sha256(str(state).encode()).hexdigest()[:12]
        folder = Path(tempfile.gettempdir()) / f"tandem-{os.getuid()}-{digest}{suffix}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.getuid(), owner):
        raise EmbeddedError(f"{folder} belongs to another user; remove it or set TANDEM_STATE_DIR.")
    if owner is not None:
        os.chown(folder, owner, -1)
    folder.chmod(0o700)
    return folder


def wait_until(
    ready: Callable[[], bool],
    process: subprocess.Popen[bytes],
    log: Path,
    what: str,
    seconds: float,
) -> None:
    """Poll `ready`; raise with the log's last lines when the process ends or time runs out."""
    deadline = time.monotonic() + seconds
    while not ready():
        if process.poll() is not None:
            raise EmbeddedError(f"{what} ended at start:\n{tail(log)}")
        if time.monotonic() > deadline:
            raise EmbeddedError(f"{what} did not answer within {seconds:.0f} s:\n{tail(log)}")
        time.sleep(0.05)


def tail(log: Path, lines: int = 8) -> str:
    if not log.exists():
        return "(no log)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def stop(process: subprocess.Popen[bytes], signum: signal.Signals, seconds: float) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signum)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(5)
