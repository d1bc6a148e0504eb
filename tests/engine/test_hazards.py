"""Every fault known from other engines is held by a test."""

import re
from pathlib import Path

from tests.engine.hazards import HAZARDS

MARK = re.compile(r'mark\.hazard\(\s*"([a-z0-9-]+)"')


def test_every_known_fault_of_other_engines_has_a_test() -> None:
    held = {
        name
        for path in Path(__file__).resolve().parents[1].rglob("test_*.py")
        for name in MARK.findall(path.read_text())
    }
    assert held == set(HAZARDS)
