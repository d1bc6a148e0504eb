"""Keys and values get what memory is left, the same on every rank, and a launch that has too little
says what to do."""

from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.errors import ConfigError, RequestError
from engine.head.fit import fit_blocks
from engine.head.guard import MemoryGuard
from engine.protocol.steps import Loaded
from engine.rank.memory import available_bytes, machine_id
from tests.engine.fake_rank import BLOCK_BYTES
from tests.engine.head_world import head_world, until

CONFIG = EngineConfig(kv_cache_tokens=16 * 1000)
CONTEXT = 8192


def loaded(available: int, machine: str = "one", block: int = 100, workspace: int = 0) -> Loaded:
    return Loaded(machine, available, block, workspace)


def test_enough_memory_gives_what_was_asked_for() -> None:
    assert fit_blocks(CONFIG, CONTEXT, [loaded(10**9), loaded(10**9)]) == 1000


def test_ranks_of_one_machine_share_what_is_left() -> None:
    """The last to load has seen least; one block pads block tables."""
    ranks = [loaded(500_000), loaded(100_000, workspace=20_000)]
    assert fit_blocks(CONFIG, CONTEXT, ranks) == 80_000 // 200 - 1


def test_the_fullest_machine_decides_for_all() -> None:
    ranks = [loaded(10**9), loaded(50_000, machine="other")]
    assert fit_blocks(CONFIG, CONTEXT, ranks) == 499


def test_too_little_for_one_short_answer_is_refused_with_a_remedy() -> None:
    ranks = [loaded(3_000_000, block=10**6, workspace=10**6)]
    with pytest.raises(ConfigError, match=r"3 MB of memory are left.*17 MB are needed.*256 tokens"):
        fit_blocks(CONFIG, CONTEXT, ranks)


def test_a_short_context_needs_no_more_than_itself() -> None:
    config = EngineConfig(kv_cache_tokens=16 * 1000, max_model_len=32)
    assert fit_blocks(config, CONTEXT, [loaded(400)]) == 3


async def test_a_head_makes_the_pool_that_its_ranks_have_room_for() -> None:
    async with head_world(ready=False, kv_cache_tokens=16 * 1000) as world:
        for rank in range(2):
            world.add_rank(rank).available_bytes = 101 * 2 * BLOCK_BYTES
        await until(lambda: world.engine.status == "ready", "being ready")
        stats = await world.stats()
    assert stats.kv_blocks_total == 100
    assert stats.kv_tokens_wanted == 16 * 1000
    assert world.engine.capacity == 1600


async def test_a_head_whose_ranks_lack_memory_is_over_before_it_is_ready() -> None:
    async with head_world(ready=False) as world:
        for rank in range(2):
            world.add_rank(rank).available_bytes = 0
        error = await world.death()
    assert isinstance(error, ConfigError)


def test_a_host_short_of_memory_takes_no_more_requests() -> None:
    MemoryGuard(0).check()
    MemoryGuard(1).check()
    with pytest.raises(RequestError, match="try again later") as refused:
        MemoryGuard(1 << 60).check()
    assert (refused.value.status, refused.value.code) == (503, "memory_low")


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_what_is_available_is_the_kernels_word(tmp_path: Path) -> None:
    write(tmp_path / "proc", meminfo="MemTotal: 9 kB\nMemAvailable:    5 kB\n")
    assert available_bytes(tmp_path / "proc", tmp_path / "cgroup") == 5 * 1024


def test_nothing_is_known_where_nothing_is_said(tmp_path: Path) -> None:
    assert available_bytes(tmp_path, tmp_path) is None


@pytest.mark.parametrize("limit", ["4000", "max"])
def test_a_control_group_may_leave_less(tmp_path: Path, limit: str) -> None:
    write(tmp_path / "proc", meminfo="MemAvailable: 5 kB\n")
    write(tmp_path / "proc/self", cgroup="0::/a/b\n")
    write(tmp_path / "cg/a", memory__max=limit, memory__current="1500", memory__stat="")
    write(tmp_path / "cg/a/b", memory__max="max", memory__current="9", memory__stat="")
    assert available_bytes(tmp_path / "proc", tmp_path / "cg") == (2500 if limit != "max" else 5120)


def test_files_in_memory_give_way(tmp_path: Path) -> None:
    write(tmp_path / "proc/self", cgroup="9:name=systemd:/\n4:memory:/a\n")
    write(
        tmp_path / "cg/memory/a",
        memory__limit_in_bytes="4000",
        memory__usage_in_bytes="3900",
        memory__stat="cache 7\ntotal_inactive_file 1000\n",
    )
    assert available_bytes(tmp_path / "proc", tmp_path / "cg") == 1100


def test_processes_of_one_box_know_it() -> None:
    assert machine_id() == machine_id() != ""
