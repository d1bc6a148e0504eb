"""Pytest plugin: real Postgres and Valkey for the whole run, before Django reads its settings.

With DATABASE_URL and REDIS_URL set, those servers are used instead. Where several processes share
the tests, each has servers of its own.
"""

import os
import shutil
import tempfile
from pathlib import Path

from dashboard.embedded import EmbeddedPostgres, EmbeddedValkey
from dashboard.translations import compile_stale

OURS = "TANDEM_TEST_SERVERS"
"""Names the variables that are ours and not the caller's, for processes started from here."""
if "PYTEST_XDIST_WORKER" in os.environ:
    for name in os.environ.pop(OURS, "").split():
        os.environ.pop(name, None)

_state = Path(tempfile.mkdtemp(prefix="tandem-tests-"))
_postgres = EmbeddedPostgres(_state)
_valkey = EmbeddedValkey(_state)

os.environ["TANDEM_STATE_DIR"] = str(_state)
# Tests empty every table, which the audit trail refuses to anybody else.
os.environ["PGOPTIONS"] = "-c tandem.audit_purge=on"
os.environ.setdefault("TANDEM_SECRET_KEY", "tests-only")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

compile_stale()
try:
    for name, server in (("DATABASE_URL", _postgres), ("REDIS_URL", _valkey)):
        if name not in os.environ:
            os.environ[name] = server.start()
            os.environ[OURS] = f"{os.environ.get(OURS, '')} {name}".strip()
except BaseException:
    _postgres.stop()
    _valkey.stop()
    raise


def pytest_unconfigure() -> None:
    _valkey.stop()
    _postgres.stop()
    shutil.rmtree(_state, ignore_errors=True)
