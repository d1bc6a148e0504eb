"""Run as `python -I -S …/keeper/__main__.py FD LABEL`, with one end of a socket pair as FD.

Without site packages, and with the standard library alone: there is one for each engine process.
"""

import contextlib
import os
import socket
import sys
from types import TracebackType

ROOT = os.path.abspath(__file__ + "/../../../..")


def main() -> None:
    sys.path.insert(0, ROOT)
    os.chdir("/")
    from engine.agent.keeper.frames import pack
    from engine.agent.keeper.keeper import Keeper

    agent = socket.socket(fileno=int(sys.argv[1]))
    # Were it passed on, whatever an engine left behind would hide the keeper's end from the agent.
    agent.set_inheritable(False)

    def tell_why(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            agent.send(pack(b"O", f"The keeper failed: {kind.__name__}: {error}\n".encode()))

    sys.excepthook = tell_why
    Keeper(agent).run()
    os._exit(0)  # At once: the agent waits for it.


if __name__ == "__main__":
    main()
