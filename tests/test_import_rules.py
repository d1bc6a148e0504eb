"""The arrows of ARCHITECTURE.md hold: every contract in pyproject.toml is kept."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_every_import_contract_is_kept() -> None:
    script = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [str(script), "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_web_process_loads_neither_torch_nor_numpy() -> None:
    """Everything that answering needs; each would make a start after a crash longer."""
    code = (
        "import sys, dashboard.asgi; from django.urls import get_resolver; "
        "get_resolver().url_patterns; print(*{'torch', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
