"""Greedy fp32 tokens equal transformers' for every plan, through real rank processes.

The expected ids come from tests/golden/make_golden.py.
"""

import json
from pathlib import Path

import pytest

from engine.bundled import bundled_model
from engine.config import EngineConfig, ParallelPlan, Transport
from tests.engine.overlap import ask, scheduler_for, serve
from tests.engine.rank_fleet import RankFleet

GOLDEN = Path(__file__).parent.parent / "golden" / "greedy_fp32.json"


@pytest.mark.model
@pytest.mark.parametrize(
    ("plan", "transport"),
    [
        ("tp=1,pp=1", "tcp"),
        ("tp=2,pp=1", "tcp"),
        ("tp=3,pp=1", "shm"),
        ("tp=1,pp=2", "tcp"),
        ("tp=2,pp=2", "shm"),
        ("tp=2,pp=1", "gloo"),
    ],
)
def test_chats_alone_and_together_answer_as_transformers_does(
    plan: str, transport: Transport, tmp_path: Path
) -> None:
    """With each step sent ahead of the result before it."""
    golden = json.loads(GOLDEN.read_text())
    config = EngineConfig(
        plan=ParallelPlan.parse(plan),
        transport=transport,
        kv_cache_tokens=20 * 160,
    )
    requests = [ask(f"r{index}", entry["ids"], 64) for index, entry in enumerate(golden)]
    alone = ask("alone", golden[0]["ids"], 16)
    with RankFleet(bundled_model(), config, tmp_path) as fleet:
        scheduler = scheduler_for(fleet)
        depths = [serve(scheduler, fleet, [alone]), serve(scheduler, fleet, requests)]
    assert depths[1] == 2
    assert alone.emitted == golden[0]["tokens"][:16]
    for entry, request in zip(golden, requests, strict=True):
        assert request.emitted == entry["tokens"], entry["prompt"]
