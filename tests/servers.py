"""Pytest plugin: real Postgres and Valkey for the whole run, before Django reads its settings.

With DATABASE_URL and REDIS_URL set, those servers are used instead.
"""

import os
import shutil
import tempfile
from pathlib import Path

from dashboard.embedded import EmbeddedPostgres, EmbeddedValkey
from dashboard.translations import compile_stale

_state = Path(tempfile.mkdtemp(prefix="tandem-tests-"))
_postgres = EmbeddedPostgres(_state)
_valkey = EmbeddedValkey(_state)

os.environ["TANDEM_STATE_DIR"] = str(_state)
os.environ.setdefault("TANDEM_SECRET_KEY", "tests-only")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

compile_stale()
try:
    if "DATABASE_URL" not in os.environ:
        os.environ["DATABASE_URL"] = _postgres.start()
    if "REDIS_URL" not in os.environ:
        os.environ["REDIS_URL"] = _valkey.start()
except BaseException:
    _postgres.stop()
    _valkey.stop()
    raise


def pytest_unconfigure() -> None:
    _valkey.stop()
    _postgres.stop()
    shutil.rmtree(_state, ignore_errors=True)
