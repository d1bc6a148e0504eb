"""Run as `python leash.py PARENT_PID COMMAND ...`: become COMMAND, and die with the parent.

The kernel kills this process when the thread that forked it ends, however it ends. It is set here,
after the fork and before the exec, because code run between them inside a threaded parent can
deadlock. Stands alone: it is started without the project on its path.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("The agent that started this process has gone.")
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"Cannot run {command[0]}: {error.strerror}.")


if __name__ == "__main__":
    main()
