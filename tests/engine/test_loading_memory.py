"""Loading takes little more memory than the weights that stay, measured in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.raw_model import Kind, write_raw_model

ALLOWANCE = 512 * 2**20
KEPT_BESIDES = 24 * 2**20
"""Buffers of libraries, and the cache of keys and values."""
MEASURE = """
import json, sys
from pathlib import Path
import torch
from engine.checkpoint import open_checkpoint
from engine.config import EngineConfig, ParallelPlan
from engine.kernels import choose_linear
from engine.models import load_decoder
from engine.parallel import Alone, Mesh
from engine.shards import rank_share

def status(key):
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[key].split()[0]) * 1024

torch.set_num_threads(1)
checkpoint = open_checkpoint(sys.argv[1])
plan = ParallelPlan(tp=2)
config = EngineConfig(plan=plan, dtype=sys.argv[2], kv_cache_tokens=256)
share = rank_share(checkpoint.config, plan, int(sys.argv[3]))
_, linear = choose_linear(config)
torch.ones(64, 64).half().float() @ torch.ones(64, 64)
Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
before = status("VmHWM")
began = status("VmRSS")
mesh = Mesh(Alone(), Alone(), "none")
decoder = load_decoder(checkpoint, config, share, linear, mesh, lambda fraction, detail: None)
peak, kept = status("VmHWM") - before, status("VmRSS") - began
print(json.dumps({"weights": decoder.weight_bytes, "peak": peak, "kept": kept}))
"""


@pytest.fixture(scope="module")
def big_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a gigabyte, most of it in one matrix: joined or packed at once it would show."""
    return write_raw_model(
        tmp_path_factory.mktemp("big") / "m.gguf",
        kind=Kind.F16,
        hidden=1024,
        intermediate=49_152,
        layers=1,
        heads=16,
        kv_heads=4,
        vocab=32_768,
        tied=False,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
@pytest.mark.parametrize("dtype", ["fp32", "int4"])
def test_a_rank_needs_its_weights_and_little_more(big_model: Path, dtype: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(big_model), dtype, "0"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    measured = json.loads(done.stdout)
    excess = measured["peak"] - measured["weights"]
    print(f"{dtype}: weights {measured['weights'] / 2**20:.0f} MiB, {excess / 2**20:.0f} MiB more")
    print(f"kept besides: {(measured['kept'] - measured['weights']) / 2**20:.1f} MiB")
    assert measured["weights"] > 100 * 2**20
    assert excess <= ALLOWANCE
    assert measured["kept"] - measured["weights"] <= KEPT_BESIDES
