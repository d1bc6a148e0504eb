"""The command lines of Tandem's own processes on this machine."""

import os
from collections.abc import Mapping

from dashboard.up.child import Program, python_program
from dashboard.up.options import Options

SECRETS_FOR_NOBODY = ("TANDEM_ADMIN_PASSWORD",)
SECRETS_FOR_THE_PANEL = (
    "DATABASE_URL",
    "REDIS_URL",
    "TANDEM_SECRET_KEY",
    "TANDEM_VAULT_KEYS",
    "TANDEM_SMTP_URL",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
)


def web(options: Options) -> Program:
    return _panel(
        "web",
        options,
        "uvicorn",
        "dashboard.asgi:application",
        f"--host={options.host}",
        f"--port={options.port}",
        "--no-access-log",
        f"--log-level={options.log_level.lower()}",
        "--timeout-graceful-shutdown=3",
        "--ws-ping-interval=20",
        "--ws-per-message-deflate=false",  # a hundred browsers follow telemetry, each second anew
    )


def worker(options: Options) -> Program:
    """Threads, not processes: jobs wait for engines and hardly compute."""
    return _panel(
        "worker",
        options,
        "celery",
        "--app=dashboard.celery",
        "--quiet",
        "worker",
        "--pool=threads",
        "--concurrency=4",
        f"--loglevel={options.log_level}",
        "--without-gossip",
        "--without-mingle",
    )


def beat(options: Options) -> Program:
    return _panel(
        "beat",
        options,
        "celery",
        "--app=dashboard.celery",
        "--quiet",
        "beat",
        f"--loglevel={options.log_level}",
        "--pidfile=",
    )


def agent(options: Options, node: str, address: str, token: str) -> Program:
    """An agent knows its own token and none of the panel's secrets."""
    inherited = _environment(without=(*SECRETS_FOR_NOBODY, *SECRETS_FOR_THE_PANEL))
    arguments = ["-m", "engine.agent", f"--server={options.url}", f"--address={address}"]
    # Named after the node, not its token: that is another one at every start of `up`.
    arguments.append(f"--state={options.state / 'agents' / node}")
    return python_program(
        node,
        arguments,
        options.logs / f"{node}.log",
        options.base,
        {**inherited, "TANDEM_NODE_TOKEN": token},
        stop_seconds=15,
    )


def _panel(name: str, options: Options, module: str, *arguments: str) -> Program:
    return python_program(
        name,
        ["-m", module, *arguments],
        options.logs / f"{name}.log",
        options.base,
        {
            **_environment(without=SECRETS_FOR_NOBODY),
            "DJANGO_SETTINGS_MODULE": "dashboard.settings",
            "TANDEM_STATE_DIR": str(options.state),
        },
        first=True,
    )


def _environment(without: tuple[str, ...]) -> Mapping[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in without}
    return inherited | {"PYTHONUNBUFFERED": "1"}
