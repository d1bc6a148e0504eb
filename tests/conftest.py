"""Tests that need a program of Debian's: left out loudly where it is missing, a failure in CI."""

import os
import shutil
from pathlib import Path

import pytest

REMEDY = "install Debian's packages chromium and fonts-noto-cjk"
PROMETHEUS_REMEDY = "install Debian's package prometheus"
_left_out: list[str] = []


def find_chromium() -> Path | None:
    """Debian's Chromium; playwright's own download is never used."""
    found = shutil.which("chromium")
    return Path(found) if found else None


def find_prometheus() -> Path | None:
    found = shutil.which("prometheus") and shutil.which("promtool")
    return Path(found) if found else None


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Path of Prometheus's own checker; a failure where it is missing, which is so in CI alone."""
    path = find_prometheus()
    if path is None:
        pytest.fail(f"There is no prometheus: {PROMETHEUS_REMEDY}.")
    return path


@pytest.fixture(scope="session")
def chromium() -> Path:
    """Path of the browser; a failure where it is missing, which is so in CI alone."""
    path = find_chromium()
    if path is None:
        pytest.fail(f"There is no chromium: {REMEDY}.")
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("CI"):
        return
    for marker, find, remedy in (
        ("browser", find_chromium, REMEDY),
        ("prometheus", find_prometheus, PROMETHEUS_REMEDY),
    ):
        wanting = [item for item in items if item.get_closest_marker(marker)]
        if not wanting or find():
            continue
        for item in wanting:
            item.add_marker(pytest.mark.skip(reason=f"no {marker}: {remedy}"))
            _left_out.append(f"{item.nodeid} ({remedy})")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _left_out:
        terminalreporter.section("LEFT OUT: a program is missing", sep="!", red=True, bold=True)
        for name in _left_out:
            terminalreporter.write_line(name)
