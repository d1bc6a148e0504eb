"""The kept process: forked, fed, signalled, reaped."""

import contextlib
import os
import signal
import time

PR_SET_PDEATHSIG = 1
OOM_SCORE = 500
"""The kernel takes engines before databases."""
PULSE_VARIABLE = "TANDEM_PULSE_FD"
CHUNK = 65536


class Engine:
    """In a process group of its own. It dies with the keeper, however that ends."""

    def __init__(self, argv: list[str], environment: dict[str, str], directory: str | None) -> None:
        stdin, self.stdin = os.pipe()
        self.stdout, stdout = os.pipe()
        self.pulse, pulse = os.pipe()
        self.open = {self.stdout, self.pulse}
        """The pipes that are not at their end yet."""
        self.input = bytearray()
        self.code: int | None = None
        self.started_at = time.time()
        keeper = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            for source, target in ((stdin, 0), (stdout, 1), (stdout, 2)):
                os.dup2(source, target)
            os.set_inheritable(pulse, True)
            _become(argv, environment | {PULSE_VARIABLE: str(pulse)}, directory, keeper)
        _own_group(self.pid)
        for descriptor in (stdin, stdout, pulse):
            os.close(descriptor)
        os.set_blocking(self.stdin, False)
        self.pidfd = os.pidfd_open(self.pid)

    def signal_group(self, number: int) -> None:
        if self.code is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def read(self, pipe: int) -> bytes:
        chunk = os.read(pipe, CHUNK)
        if not chunk:
            self.open.discard(pipe)
        return chunk

    def write(self) -> None:
        """What of its input it takes now; it may be busy."""
        try:
            del self.input[: os.write(self.stdin, self.input)]
        except BrokenPipeError:  # It ended already; its exit says why.
            self.input.clear()

    def reap(self) -> None:
        self.signal_group(signal.SIGKILL)  # Whatever it left behind; the pid is still its own.
        _, status = os.waitpid(self.pid, 0)
        self.code = os.waitstatus_to_exitcode(status)


def _own_group(pid: int) -> None:
    """Done on both sides of the fork: no signal may come before it, nor after the exec."""
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)


def _become(
    argv: list[str], environment: dict[str, str], directory: str | None, keeper: int
) -> None:
    """In the forked child: turn into the engine."""
    import ctypes  # Here alone: the keeper itself has no need of it.

    try:
        _own_group(0)
        for number in (signal.SIGPIPE, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(1)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
            score.write(str(OOM_SCORE))
        os.chdir(directory or "/")
        os.execvpe(argv[0], argv, environment)
    except OSError as error:
        os.write(1, f"Cannot run {argv[0]}: {error.strerror}.\n".encode())
    finally:
        os._exit(127)
