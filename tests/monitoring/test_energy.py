"""What a box used: the widest measured scope, never a sum of scopes, and said with what it leaves
out. What a token took: of all boxes of a deployment, worked out by hand."""

import pytest

from monitoring.accounts.energy import (
    FEW_TOKENS,
    NEVER_IDLE,
    NO_ENERGY,
    Account,
    Tenure,
    Tokens,
    Used,
    accounts,
    busy,
    idle_share,
    idle_watts,
    per_token,
    used,
    used_by_box,
)
from monitoring.storage.series import Gain

MINUTE = 60.0


def gain(
    scope: str,
    joules: float,
    *,
    topic: str = "1/node",
    kind: str = "measured",
    covered: float = MINUTE,
    label: str = "",
    at: float = 0.0,
) -> Gain:
    return Gain(topic, "energy_joules_total", scope, label, kind, at, joules, covered)


def chip(index: int, joules: float, *, kind: str = "measured", covered: float = MINUTE) -> Gain:
    return gain("accelerator", joules, topic=f"1/gpu:{index}", kind=kind, covered=covered)


def test_of_two_scopes_the_wider_counts_and_they_are_not_added() -> None:
    found = used([gain("wall", 9000), gain("host", 8000), chip(0, 5000), gain("cpu", 1000)])
    assert found == Used(9000, MINUTE, "wall", "measured")


def test_a_narrow_measurement_counts_before_a_wide_estimate() -> None:
    found = used([gain("wall", 9000, kind="estimated"), chip(0, 5000)])
    assert found == Used(5000, MINUTE, "accelerators", "measured")


def test_an_estimate_counts_where_nothing_is_measured_and_stays_one() -> None:
    found = used([gain("host", 9000, kind="declared"), chip(0, 5000, kind="estimated")])
    assert found == Used(9000, MINUTE, "host", "declared")


def test_accelerators_and_processors_have_no_part_in_common() -> None:
    found = used([chip(0, 5000), chip(1, 4000), gain("cpu", 1000)])
    assert found == Used(10_000, MINUTE, "parts", "measured")
    assert used([gain("cpu", 700)]) == Used(700, MINUTE, "processors", "measured")


def test_of_parts_an_estimated_one_is_left_out_beside_a_measured_one() -> None:
    found = used([chip(0, 5000), gain("cpu", 1000, kind="estimated")])
    assert found == Used(5000, MINUTE, "accelerators", "measured")


def test_a_processors_packages_are_added_unless_their_sum_is_told() -> None:
    packages = [gain("cpu", 300, label="package-0"), gain("cpu", 400, label="package-1")]
    assert used(packages) == Used(700, MINUTE, "processors", "measured")
    assert used([*packages, gain("cpu", 710)]) == Used(710, MINUTE, "processors", "measured")


def test_two_meters_of_one_box_are_not_added() -> None:
    found = used([gain("host", 9000, label="old"), gain("host", 9100, label="new", covered=59)])
    assert found == Used(9000, MINUTE, "host", "measured")


def test_a_meter_that_was_away_most_of_the_time_does_not_speak_for_it() -> None:
    found = used([gain("wall", 900, covered=6), gain("host", 8000)])
    assert found == Used(8000, MINUTE, "host", "measured")
    assert used([gain("wall", 5000, covered=40), gain("host", 8000)]) == Used(
        5000, 40, "wall", "measured"
    )


def test_nothing_is_known_of_a_box_that_tells_nothing() -> None:
    assert used([]) is None
    assert used([gain("wall", 0.0, covered=0.0)]) is None
    assert used_by_box([]) == {}


# --- What a token took -------------------------------------------------------------------------

BOTH = frozenset({1, 2})


def wall(joules: float, covered: float = MINUTE) -> Used:
    return Used(joules, covered, "wall", "measured")


def test_a_token_took_the_joules_of_all_boxes_through_all_tokens() -> None:
    """Two boxes, two minutes: 6000 + 6600 and 3000 + 3300 J for 900 + 1200 tokens: 9 J each."""
    boxes = {(1, 0.0): wall(6000), (1, 60.0): wall(6600), (2, 0.0): wall(3000)}
    boxes[2, 60.0] = wall(3300)
    work = {("l", 0.0): Tokens(2100, 900), ("l", 60.0): Tokens(0, 1200)}
    account = accounts(boxes, MINUTE, [Tenure(7, "l", BOTH, 0, 1e9)], work)[7]
    assert account.joules == 18_900
    assert account.tokens == Tokens(2100, 2100)
    found = per_token(account, {})
    assert found.generated == 9.0
    assert found.any == 4.5
    assert (found.above_idle, found.idle_reason) == (None, NEVER_IDLE)
    assert account.kind == "derived"
    assert not account.shared


def test_above_idle_leaves_out_what_the_boxes_draw_anyway() -> None:
    """50 W idle for 60 s are 3000 J of 6000: 3 J above idle for each of 1000 tokens."""
    boxes = {(1, 0.0): wall(6000)}
    account = accounts(
        boxes, MINUTE, [Tenure(7, "l", frozenset({1}), 0, 60)], {("l", 0.0): Tokens(0, 1000)}
    )[7]
    assert per_token(account, {1: 50.0}).above_idle == 3.0


def test_a_minute_that_one_box_does_not_tell_counts_for_neither_side() -> None:
    boxes = {(1, 0.0): wall(6000), (2, 0.0): wall(3000), (1, 60.0): wall(6000)}
    boxes[2, 60.0] = wall(900, covered=20)
    work = {("l", 0.0): Tokens(0, 3000), ("l", 60.0): Tokens(0, 3000)}
    account = accounts(boxes, MINUTE, [Tenure(7, "l", BOTH, 0, 1e9)], work)[7]
    assert (account.joules, account.tokens.generated) == (9000, 3000)
    assert (account.seconds, account.left_out) == (60, 60)


def test_too_few_tokens_and_no_energy_are_reasons_not_zeros() -> None:
    few = Account(joules=500, tokens=Tokens(10, 999), seconds=60)
    assert per_token(few, {}).generated is None
    assert per_token(few, {}).reason == FEW_TOKENS
    assert per_token(Account(), {}).reason == NO_ENERGY


def test_two_deployments_on_one_box_are_divided_by_their_tokens_and_it_is_said() -> None:
    boxes = {(1, 0.0): wall(6000), (1, 60.0): wall(1000)}
    tenures = [
        Tenure(7, "a", frozenset({1}), 0, 1e9),
        Tenure(8, "b", frozenset({1}), 0, 1e9),
    ]
    work = {("a", 0.0): Tokens(500, 1500), ("b", 0.0): Tokens(0, 1000)}
    found = accounts(boxes, MINUTE, tenures, work)
    assert found[7].joules == pytest.approx(4000 + 500)
    assert found[8].joules == pytest.approx(2000 + 500)
    assert found[7].shared
    assert found[8].shared


def test_two_replicas_of_one_deployment_on_one_box_are_not_divided() -> None:
    boxes = {(1, 0.0): wall(6000)}
    tenures = [
        Tenure(7, "a", frozenset({1}), 0, 1e9),
        Tenure(7, "b", frozenset({1}), 0, 1e9),
    ]
    work = {("a", 0.0): Tokens(0, 1000), ("b", 0.0): Tokens(0, 2000)}
    account = accounts(boxes, MINUTE, tenures, work)[7]
    assert (account.joules, account.tokens.generated, account.shared) == (6000, 3000, False)


def test_a_launch_that_came_in_the_middle_has_half_of_the_minute() -> None:
    boxes = {(1, 0.0): wall(6000)}
    account = accounts(boxes, MINUTE, [Tenure(7, "l", frozenset({1}), 30, 1e9)], {})[7]
    assert account.joules == 3000


def test_an_estimate_stays_one_in_what_is_made_of_it() -> None:
    boxes = {(1, 0.0): Used(6000, MINUTE, "host", "estimated"), (2, 0.0): wall(10)}
    account = accounts(boxes, MINUTE, [Tenure(7, "l", BOTH, 0, 1e9)], {})[7]
    assert account.kind == "estimated"
    assert account.bases == {"host", "wall"}


def test_idle_is_where_no_engine_on_the_box_handled_a_token() -> None:
    boxes = {(1, 60.0 * n): wall(3000 if n else 9000) for n in range(11)}
    tenures = [Tenure(7, "l", frozenset({1}), 0, 1e9)]
    at_work = busy(tenures, {("l", 0.0): Tokens(1, 0), ("l", 60.0): Tokens(0, 0)})
    assert at_work == {(1, 0.0)}
    assert idle_watts(boxes, at_work) == {1: 50.0}
    assert idle_share(boxes, at_work) == 30_000 / 39_000
    assert idle_share({}, set()) is None
    assert idle_watts(dict(list(boxes.items())[:5]), at_work) == {}


def test_one_plug_of_several_is_not_what_the_box_drew() -> None:
    plugs = [gain("wall", 4000, label="left"), gain("wall", 5000, label="right")]
    assert used([gain("wall", 9000), *plugs]) == Used(9000, MINUTE, "wall", "measured")
    assert used([plugs[0], chip(0, 2000)]) == Used(2000, MINUTE, "accelerators", "measured")
    assert used(plugs[:1]) is None
