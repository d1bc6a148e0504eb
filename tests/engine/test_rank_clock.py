"""What a rank reports of its time."""

from engine.parallel import Alone, Mesh
from engine.runner.clock import Clock


def test_waiting_for_a_stage_counts_as_communication_and_is_told_apart() -> None:
    mesh = Mesh(Alone(), Alone(), "none")
    clock = Clock(mesh)
    clock.begin()
    mesh.tp.seconds, mesh.pipeline.seconds = 0.25, 0.5
    timings = clock.end()
    assert (timings.communicate, timings.pipeline) == (0.75, 0.5)
    assert timings.compute == 0.0, "never less than nothing"
    assert (mesh.tp.seconds, mesh.pipeline.seconds) == (0.0, 0.0)


def test_a_rank_is_idle_from_the_end_of_a_step_to_the_next_and_not_before_the_first() -> None:
    mesh = Mesh(Alone(), Alone(), "none")
    clock = Clock(mesh)
    clock.begin()
    assert clock.end().idle == 0.0
    clock.begin()
    assert clock.end().idle > 0.0
    mesh.tp.seconds = 9.0
    clock.restart()
    clock.begin()
    timings = clock.end()
    assert (timings.idle, timings.communicate) == (0.0, 0.0)
