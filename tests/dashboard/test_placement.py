"""Where ranks go, and why they sometimes go nowhere."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.errors import PlacementError
from dashboard.placement import HEAD_BYTES, USABLE, NodeCapacity, Placement, place
from engine.config import EngineConfig, ParallelPlan
from tests.shapes import SMOLLM2

GIB = 2**30


def box(
    pk: int, gib: float | None = 64, **changes: bool | int | str | frozenset[str]
) -> NodeCapacity:
    fields = {
        "pk": pk,
        "name": f"box-{pk}",
        "online": True,
        "schedulable": True,
        "machine": f"box-{pk}",
        "memory_bytes": None if gib is None else int(gib * GIB),
    } | changes
    return NodeCapacity(**fields)  # type: ignore[arg-type]  # checked by the dict above


def config(tp: int = 1, pp: int = 1) -> EngineConfig:
    return EngineConfig(plan=ParallelPlan(tp=tp, pp=pp), max_model_len=1024, kv_cache_tokens=1024)


def test_a_number_type_that_no_node_can_do_is_refused_by_name() -> None:
    wanted = msgspec.structs.replace(config(tp=2), dtype="fp8")
    old = frozenset({"avx2"})
    with pytest.raises(PlacementError, match="fp8 weights need amx_fp8; this processor can run"):
        place(SMOLLM2, wanted, [box(1, instruction_sets=old), box(2, instruction_sets=old)])


def test_ranks_go_where_the_number_type_is_known() -> None:
    wanted = msgspec.structs.replace(config(tp=2), dtype="fp8")
    nodes = [box(1, instruction_sets=frozenset()), box(2, instruction_sets=frozenset({"amx_fp8"}))]
    assert place(SMOLLM2, wanted, nodes).ranks == [2, 2]


def test_gpu_ranks_go_where_gpus_are() -> None:
    wanted = EngineConfig(device="cuda", max_model_len=1024, kv_cache_tokens=1024)
    assert place(SMOLLM2, wanted, [box(1, gpus=0), box(2, gpus=1)]).ranks == [2]
    assert place(SMOLLM2, wanted, [box(1, gpus=0), box(2)]).ranks == [2]
    with pytest.raises(PlacementError, match=r"has an NVIDIA GPU; choose the device cpu"):
        place(SMOLLM2, wanted, [box(1, gpus=0), box(2, gpus=0)])


def test_two_ranks_go_to_two_nodes_and_the_head_to_the_first() -> None:
    placement = place(SMOLLM2, config(tp=2), [box(1), box(2)])
    assert (placement.ranks, placement.head) == ([1, 2], 1)


def test_the_ranks_of_a_stage_stay_together() -> None:
    assert place(SMOLLM2, config(tp=2, pp=2), [box(1), box(2)]).ranks == [1, 1, 2, 2]


def test_one_node_takes_every_rank_when_it_is_the_only_one() -> None:
    nodes = [box(1), box(2, online=False), box(3, schedulable=False)]
    assert place(SMOLLM2, config(tp=3), nodes).ranks == [1, 1, 1]


def test_idle_nodes_are_taken_first() -> None:
    assert place(SMOLLM2, config(), [box(1, ranks=1), box(2)]).ranks == [2]


def test_a_bigger_box_takes_more_when_an_even_spread_does_not_fit() -> None:
    assert sorted(place(SMOLLM2, config(tp=3), [box(1, 0.7), box(2, 64)]).ranks) == [2, 2, 2]


def test_nodes_of_one_machine_share_its_memory() -> None:
    need = sum(place(SMOLLM2, config(tp=2), [box(1)]).bytes_per_rank) + HEAD_BYTES
    fits_once = need / USABLE * 0.9 / GIB
    place(SMOLLM2, config(tp=2), [box(1, fits_once), box(2, fits_once)])
    with pytest.raises(PlacementError, match="too little"):
        place(
            SMOLLM2,
            config(tp=2),
            [box(1, fits_once, machine="same"), box(2, fits_once, machine="same")],
        )


def test_what_is_too_big_is_refused_with_the_amount_and_the_remedy() -> None:
    with pytest.raises(PlacementError) as refusal:
        place(SMOLLM2, config(), [box(1, 0.5)])
    assert "on box-1, which has 0.5 GB free" in str(refusal.value)
    assert "another node would help" in str(refusal.value)


def test_a_node_that_is_away_is_named_as_the_remedy() -> None:
    with pytest.raises(PlacementError, match="box-2 offline, and bringing that back would help"):
        place(SMOLLM2, config(), [box(1, 0.5), box(2, online=False)])


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([], "no node yet"),
        ([box(1, online=False)], "box-1 offline"),
        ([box(1, schedulable=False)], "closed for new ranks"),
    ],
)
def test_without_a_usable_node_it_says_which_kind_of_without(
    nodes: list[NodeCapacity], words: str
) -> None:
    with pytest.raises(PlacementError, match=words):
        place(SMOLLM2, config(), nodes)


def test_more_ranks_than_query_heads_are_refused_with_the_remedy() -> None:
    with pytest.raises(PlacementError, match="make tp × ep 9 or less"):
        place(SMOLLM2, config(tp=10), [box(1)])


nodes_strategy = st.lists(
    st.builds(
        lambda gib, online, schedulable, machine, ranks: (gib, online, schedulable, machine, ranks),
        st.one_of(st.none(), st.floats(0.1, 16)),
        st.booleans(),
        st.booleans(),
        st.integers(0, 3),
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=5,
)


@given(nodes_strategy, st.integers(1, 3), st.integers(1, 4))
def test_a_placement_never_breaks_a_rule(
    drawn: list[tuple[float | None, bool, bool, int, int]], tp: int, pp: int
) -> None:
    nodes = [
        box(pk, gib, online=online, schedulable=open_, machine=f"m{machine}", ranks=ranks)
        for pk, (gib, online, open_, machine, ranks) in enumerate(drawn)
    ]
    try:
        placement = place(SMOLLM2, config(tp, pp), nodes)
    except PlacementError:
        return
    assert len(placement.ranks) == tp * pp
    assert placement.head == placement.ranks[0]
    assert all(nodes[pk].usable for pk in placement.ranks)
    assert_memory_holds(placement, nodes)


def assert_memory_holds(placement: Placement, nodes: list[NodeCapacity]) -> None:
    for machine in {node.machine for node in nodes}:
        sizes = [n.memory_bytes for n in nodes if n.machine == machine and n.memory_bytes]
        used = sum(
            need
            for pk, need in zip(placement.ranks, placement.bytes_per_rank, strict=True)
            if nodes[pk].machine == machine
        )
        if sizes and used:
            assert used <= max(sizes) * USABLE


@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 4))
def test_with_room_enough_no_node_has_two_ranks_more_than_another(
    count: int, tp: int, pp: int
) -> None:
    placement = place(SMOLLM2, config(tp, pp), [box(pk) for pk in range(count)])
    loads = [placement.ranks.count(pk) for pk in range(count)]
    assert max(loads) - min(loads) <= 1
    assert placement.ranks == sorted(placement.ranks), "neighbours stay together"
