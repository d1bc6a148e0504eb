"""Compiles locale/*.po to the .mo files Django reads, without gettext's tools being installed."""

from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

LOCALE = Path(__file__).resolve().parents[1] / "locale"


def compile_stale(locale: Path = LOCALE) -> list[Path]:
    """Write every catalogue that is missing or older than its source; returns what was written."""
    written = []
    for source in sorted(locale.glob("*/LC_MESSAGES/*.po")):
        target = source.with_suffix(".mo")
        if target.exists() and target.stat().st_mtime_ns >= source.stat().st_mtime_ns:
            continue
        with source.open("rb") as file:
            catalog = read_po(file, locale=source.parents[1].name, abort_invalid=True)
        beside = target.with_suffix(".mo.new")
        with beside.open("wb") as file:
            write_mo(file, catalog)
        beside.replace(target)
        written.append(target)
    return written


if __name__ == "__main__":
    for path in compile_stale():
        print(f"compiled {path.name} ({path.parents[1].name})")
