"""One fleet over two boxes for all tests here; skipped loudly where there can be none."""

import os
from collections.abc import Iterator

import pytest

from tests.chaos.fleet import Fleet, fleet
from tests.engine.boxes import why_not

_left_out: list[str] = []


@pytest.fixture(scope="package")
def two_hosts() -> Iterator[Fleet]:
    """A ready deployment across two network namespaces, without a fallback."""
    reason = why_not()
    assert reason is None, reason
    with fleet() as it:
        yield it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_not()
    if reason is None or os.environ.get("CI"):
        return
    for item in items:
        if "two_hosts" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip(reason=f"NO TWO HOSTS: {reason}"))
            _left_out.append(item.nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _left_out:
        terminalreporter.section("LEFT OUT: no two hosts", sep="!", red=True, bold=True)
        for name in _left_out:
            terminalreporter.write_line(name)
        terminalreporter.write_line(f"To run these too: {why_not()}.")
