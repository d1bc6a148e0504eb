"""What a rank is at can be read from another thread while it waits for its peers."""

import time
from concurrent.futures import ThreadPoolExecutor

import torch

from engine.parallel import Group, Mesh
from engine.parallel.activity import ActivityLog
from tests.engine.group_threads import SECONDS, on_meshes


def until(log: ActivityLog, doing: str) -> None:
    deadline = time.monotonic() + SECONDS
    while log.doing != doing:
        assert time.monotonic() < deadline, f"{log.doing}, never {doing}"


def test_it_begins_with_nothing() -> None:
    activity = ActivityLog().read()
    assert (activity.doing, activity.layer) == ("", None)


def test_a_wait_is_named_with_its_layer_and_over_when_it_ends() -> None:
    def work(mesh: Mesh) -> list[tuple[str, int | None]]:
        log, seen = mesh.activity, []
        log.at("compute", 12)
        if mesh.tp.rank == 0:
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(mesh.tp.all_reduce, torch.ones(3))
                until(log, "all-reduce")
                seen.append((log.doing, log.read().layer))
                assert log.read().seconds >= 0
                mesh.tp.send(torch.ones(1), 1)
                waiting.result(SECONDS)
        else:
            mesh.tp.receive((1,), 0)
            mesh.tp.all_reduce(torch.ones(3))
        return [*seen, (log.doing, log.layer)]

    first, second = on_meshes("tp=2", "tcp", work)
    assert first[0] == ("all-reduce", 12)
    assert first[-1][1] == second[-1][1] == 12
    assert second[-1] == ("compute", 12)


def test_a_group_of_one_leaves_no_trace() -> None:
    def work(mesh: Mesh) -> Group:
        mesh.activity.at("compute", 3)
        mesh.tp.all_reduce(torch.ones(3))
        assert (mesh.activity.doing, mesh.activity.layer) == ("compute", 3)
        return mesh.tp

    assert on_meshes("tp=1", "auto", work)[0].seconds == 0
