import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.up.errors import UpError
from dashboard.up.lock import StateLock

HOLD = "import sys; from pathlib import Path; from dashboard.up.lock import StateLock\n"
HOLD += "with StateLock(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"


def hold(state: Path) -> subprocess.Popen[bytes]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(state)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    return holder


def test_a_state_directory_in_use_names_who_uses_it(tmp_path: Path) -> None:
    with hold(tmp_path) as holder:
        with (
            pytest.raises(UpError, match=rf"already in use by pid {holder.pid}\."),
            StateLock(tmp_path),
        ):
            pass
        holder.kill()


def test_a_killed_holder_does_not_block_the_next(tmp_path: Path) -> None:
    with hold(tmp_path) as holder:
        holder.kill()
        holder.wait(10)
        with StateLock(tmp_path) as lock:
            assert lock.path.exists()


def test_nothing_is_left_after_an_orderly_end(tmp_path: Path) -> None:
    with StateLock(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
