"""Greedy fp32 tokens equal transformers' for every plan, through real rank processes.

The expected ids come from tests/golden/make_golden.py.
"""

import json
from pathlib import Path

import pytest

from engine.bundled import bundled_model
from engine.config import EngineConfig, ParallelPlan, Transport
from tests.engine.rank_fleet import RankFleet

GOLDEN = Path(__file__).parent.parent / "golden" / "greedy_fp32.json"


@pytest.mark.model
@pytest.mark.parametrize(
    ("plan", "transport"),
    [
        ("tp=1,pp=1", "tcp"),
        ("tp=2,pp=1", "tcp"),
        ("tp=3,pp=1", "tcp"),
        ("tp=1,pp=2", "tcp"),
        ("tp=2,pp=2", "tcp"),
        ("tp=2,pp=1", "gloo"),
    ],
)
def test_twenty_chats_answer_as_transformers_does(
    plan: str, transport: Transport, tmp_path: Path
) -> None:
    golden = json.loads(GOLDEN.read_text())
    config = EngineConfig(
        plan=ParallelPlan.parse(plan), transport=transport, kv_cache_tokens=20 * 160
    )
    with RankFleet(bundled_model(), config, tmp_path) as fleet:
        answers = fleet.generate([entry["ids"] for entry in golden], tokens=64)
    for entry, answer in zip(golden, answers, strict=True):
        assert answer == entry["tokens"], entry["prompt"]
