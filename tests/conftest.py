"""Tests that need a browser: left out loudly where there is none, a failure in CI."""

import os
import shutil
from pathlib import Path

import pytest

REMEDY = "install Debian's packages chromium and fonts-noto-cjk"
_left_out: list[str] = []


def find_chromium() -> Path | None:
    """Debian's Chromium; playwright's own download is never used."""
    found = shutil.which("chromium")
    return Path(found) if found else None


@pytest.fixture(scope="session")
def chromium() -> Path:
    """Path of the browser; a failure where it is missing, which is so in CI alone."""
    path = find_chromium()
    if path is None:
        pytest.fail(f"There is no chromium: {REMEDY}.")
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if find_chromium() or os.environ.get("CI"):
        return
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=f"no chromium: {REMEDY}"))
            _left_out.append(item.nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _left_out:
        terminalreporter.section("LEFT OUT: no browser", sep="!", red=True, bold=True)
        for name in _left_out:
            terminalreporter.write_line(name)
        terminalreporter.write_line(f"To run these too, {REMEDY}.")
