"""`python leash.py PARENT_PID COMMAND ...`: become COMMAND, and die with the parent's thread.

It is set between the fork and the exec of a program of its own, because code run there inside a
process with threads can deadlock.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def on_leash() -> list[str]:
    """What stands before such a command."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid())]


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("The process that started this one has gone.")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
