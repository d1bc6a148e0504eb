"""`python -m engine.bench --compare` measures the real engine, and says in a sentence when not."""

import subprocess
import sys
from pathlib import Path

import msgspec

from engine.bench.compare.report import Report
from tests.engine.tiny_model import write_tiny_model

ROOT = Path(__file__).resolve().parents[2]


def compare(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "engine.bench", "--compare", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)


def test_a_quick_run_of_ours_alone(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    done = compare(
        *("--quick", "--model", str(model), "--scratch", str(tmp_path / "scratch")),
        *("--ours", "tandem-int8", "--work", "decode,first,serve"),
        *("--html", str(tmp_path / "page.html"), "--json", str(tmp_path / "report.json")),
    )
    assert done.returncode == 0, done.stderr
    report = msgspec.json.decode(done.stdout, type=Report)
    assert report.quick
    (player,) = report.players
    assert player.ours
    assert not player.gone
    assert "int8 weights" in player.how
    for row in report.rows:
        if not row.name.startswith("serve-"):
            spread = row.spread("tandem-int8")
            assert spread is not None, row.series
            assert spread.median > 0
    assert report.limits is not None
    assert report.limits.bandwidth.median > 0
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "report.json").read_text() == done.stdout


def test_a_device_that_the_engine_does_not_know_is_refused(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    done = compare(
        *("--quick", "--model", str(model), "--scratch", str(tmp_path / "scratch")),
        *("--device", "abacus", "--ours", "tandem-int8"),
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "abacus" in done.stderr.strip().splitlines()[-1]
