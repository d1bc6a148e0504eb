"""The reference of the API names every field that the engine knows."""

from pathlib import Path

from engine.head.api.requests import UNSUPPORTED
from tests.engine.request_bodies import FIELDS

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "api.md"


def test_every_field_is_described() -> None:
    text = REFERENCE.read_text()
    missing = [name for name in (*FIELDS, *UNSUPPORTED) if f"`{name}`" not in text]
    assert missing == []
