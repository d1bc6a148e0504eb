import re
import tomllib
from pathlib import Path

from django.conf import settings

PROJECT = Path(__file__).resolve().parents[1]


def test_every_place_names_the_same_version() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    newest = re.search(r"^## (\S+)", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert project["version"] == settings.VERSION == newest.group(1)


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    pins = (PROJECT / "constraints.txt").read_text()
    pinned = {plain(line) for line in pins.splitlines() if "==" in line}
    assert {plain(line) for line in wanted} - pinned == set()


def plain(requirement: str) -> str:
    """Package names compare without case, and with one separator."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name.group()).lower()
