"""What `up` takes from the environment, read strictly before anything starts."""

import errno
import secrets
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

from dashboard import env
from dashboard.up.errors import UpError
from dashboard.up.note import write_private
from monitoring import vault

PORT_WAIT_SECONDS = 2.0
"""A killed `up` may need a moment until the kernel has ended its web process."""
WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True)
class Options:
    base: Path
    state: Path
    host: str
    port: int
    admin_password: str = field(repr=False)
    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    log_level: str = "INFO"
    nodes: int = 2
    """How many of the local nodes run here; 0 leaves engines to agents elsewhere."""
    demo: bool = True
    """Whether an empty catalogue gets the bundled model, deployed."""

    @classmethod
    def from_environment(cls, base: Path, nodes: int = 2, demo: bool = True) -> "Options":
        """Raises ImproperlyConfigured for a malformed value, also one that only Django reads."""
        env.port_range("TANDEM_ENGINE_PORTS", "21000-30999")
        env.flag("TANDEM_DEBUG", False)
        env.choice("TANDEM_LOG_FORMAT", "text", ("text", "json"))
        env.origins("TANDEM_TRUSTED_ORIGINS")
        env.vault_keys("TANDEM_VAULT_KEYS")
        env.folder("TANDEM_SYSFS_ROOT")
        env.folder("TANDEM_DEV_ROOT")
        env.folder("TANDEM_PROC_ROOT")
        if env.text("DATABASE_URL"):
            env.database("DATABASE_URL")
        return cls(
            base=base,
            state=env.state_dir(base),
            host=env.text("TANDEM_HOST") or "127.0.0.1",
            port=env.integer("TANDEM_PORT", 8000, 1, 65535),
            admin_password=env.text("TANDEM_ADMIN_PASSWORD"),
            database_url=env.text("DATABASE_URL"),
            redis_url=env.text("REDIS_URL"),
            log_level=env.log_level("TANDEM_LOG_LEVEL", "INFO"),
            nodes=nodes,
            demo=demo and nodes > 0,
        )

    @property
    def url(self) -> str:
        """Where a browser and the agents on this machine reach the web process."""
        host = WILDCARDS.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def logs(self) -> Path:
        return self.state / "log"


def prepare_state(state: Path) -> None:
    """Private folders, and the keys of sessions and secrets, made once. Raises UpError."""
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("log", "secrets"):
            (state / name).mkdir(mode=0o700, exist_ok=True)
        key = state / "secrets" / "django-key"
        if not key.exists():
            write_private(key, secrets.token_urlsafe(48))
        vault_keys = state / "secrets" / "vault-keys"
        if not vault_keys.exists():
            vault.write_keys(vault_keys, [vault.new_key()])
    except OSError as error:
        raise UpError(
            f"Cannot use the state directory {state}: {error.strerror}. "
            "Set TANDEM_STATE_DIR to a folder of your own."
        ) from error


def check_port(host: str, port: int) -> None:
    """Raises UpError when the web process could not listen there."""
    deadline = time.monotonic() + PORT_WAIT_SECONDS
    while error := _bind_error(host, port):
        if error.errno != errno.EADDRINUSE:
            raise UpError(
                f"Cannot listen on {host}:{port}: {error.strerror}. "
                "Set TANDEM_HOST and TANDEM_PORT to others."
            ) from error
        if time.monotonic() > deadline:
            raise UpError(
                f"Port {port} on {host} is taken by another program. "
                "Stop it, or set TANDEM_PORT to a free one."
            ) from error
        time.sleep(0.1)


def _bind_error(host: str, port: int) -> OSError | None:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        return error
    return None
