"""One `up` for one state directory. The kernel lets go of the lock however its holder ends."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import IO

from dashboard.up.errors import UpError


class StateLock:
    """Held inside `with`; raises UpError naming the holder when somebody else has it."""

    def __init__(self, state: Path) -> None:
        self.path = state / "up.lock"
        self._file: IO[str] | None = None

    def __enter__(self) -> "StateLock":
        file = self._open_current()
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._file = file
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self.path.unlink(missing_ok=True)
            self._file.close()

    def _open_current(self) -> IO[str]:
        """Lock the file that has the name now: the last holder removes it while letting go."""
        while True:
            file = self.path.open("a+")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                file.close()
                raise UpError(
                    f"The state directory {self.path.parent} is already in use by pid {holder}. "
                    "Stop that one, or set TANDEM_STATE_DIR to another folder."
                ) from error
            if self._still_named(file):
                return file
            file.close()

    def _still_named(self, file: IO[str]) -> bool:
        try:
            return os.path.samestat(self.path.stat(), os.fstat(file.fileno()))
        except FileNotFoundError:
            return False
