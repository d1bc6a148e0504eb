"""The C half of the shared-memory group, compiled when it is first needed.

Compiled files are kept in a folder that only this user can enter, named by what they were made of,
so that a new version never meets an old one and ranks that start together may all compile.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from engine.errors import RankError
from engine.errors import gettext_noop as _

SOURCE = Path(__file__).with_name("shared.c")
FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-shared", "-fPIC")
COMPILERS = ("cc", "gcc", "clang")
COMPILE_SECONDS = 60.0


def library_key() -> str:
    """Members can share memory only if all have the same one."""
    made_of = (SOURCE.read_bytes(), repr(FLAGS).encode(), platform.machine().encode())
    return hashlib.sha256(b"-".join(made_of)).hexdigest()[:24]


def load_library() -> ctypes.CDLL:
    """Raises RankError where it can be neither found nor made; the sentence names the remedy."""
    name = f"shared-{library_key()}.so"
    folder = _private_folder()
    if not (folder / name).is_file():
        _compile(folder / name)
    try:
        library = ctypes.CDLL(str(folder / name))
    except OSError as error:
        raise RankError(
            _("The compiled part of shared memory cannot be loaded: %(reason)s"), reason=str(error)
        ) from error
    return _declared(library)


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    pointer, number, size = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t
    declarations: dict[str, tuple[object, list[object]]] = {
        "tandem_bytes": (size, [number]),
        "tandem_state_bytes": (size, []),
        "tandem_open": (None, [pointer, pointer, number, number, pointer, ctypes.c_double]),
        "tandem_sum": (ctypes.c_int, [pointer, pointer, pointer, size, pointer]),
        "tandem_put": (ctypes.c_int, [pointer, number, pointer, size]),
        "tandem_take": (ctypes.c_int, [pointer, number, pointer, size]),
    }
    for name, (result, arguments) in declarations.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _private_folder() -> Path:
    """The first of the usual places that is, or can be made, this user's alone."""
    for folder in _candidates():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.lstat()
        except OSError:
            continue
        private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
        if private and status.st_uid == os.geteuid() and os.access(folder, os.W_OK):
            return folder
    raise RankError(_("There is no private folder to keep the compiled part of shared memory in."))


def _candidates() -> Iterator[Path]:
    if cache := os.environ.get("XDG_CACHE_HOME"):
        yield Path(cache) / "tandem"
    if home := os.environ.get("HOME"):
        yield Path(home) / ".cache" / "tandem"
    yield Path(tempfile.gettempdir()) / f"tandem-{os.geteuid()}"


def _compile(target: Path) -> None:
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise RankError(
            _(
                "Shared memory between ranks needs a C compiler on this node; install one (on "
                "Debian: apt install gcc libc6-dev) or choose the transport tcp."
            )
        )
    descriptor, draft = tempfile.mkstemp(dir=target.parent, suffix=".so")
    os.close(descriptor)
    try:
        _run(compiler, draft)
        os.replace(draft, target)
    finally:
        Path(draft).unlink(missing_ok=True)


def _run(compiler: str, draft: str) -> None:
    command = [compiler, *FLAGS, str(SOURCE), "-o", draft]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMPILE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _refused(str(error)) from error
    if done.returncode:
        raise _refused(done.stdout.decode(errors="replace").strip())


def _refused(reason: str) -> RankError:
    return RankError(
        _(
            "The C compiler on this node cannot make what shared memory between ranks needs; "
            "repair it (on Debian: apt install gcc libc6-dev) or choose the transport tcp. It "
            "said: %(reason)s"
        ),
        reason=reason,
    )
