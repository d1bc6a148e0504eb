"""Whatever was running, the node ends up running exactly what is asked for."""

from hypothesis import given
from hypothesis import strategies as st

from engine.agent.reconcile import Action, Forget, Seen, Start, Stop, reconcile
from engine.protocol.launch import ProcessSpec
from tests.engine.agents import spec_of

SPECS = [spec_of("", launch=launch, rank=rank) for launch in ("a", "b") for rank in range(3)]
KEYS = [spec.key for spec in SPECS]

desired_states = st.lists(st.sampled_from(SPECS), max_size=8)
node_states = st.dictionaries(
    st.sampled_from(KEYS), st.sampled_from(["alive", "stopping", "exited"]), max_size=6
)


def seen(node: dict[str, str]) -> list[Seen]:
    return [Seen(key, life) for key, life in node.items()]  # type: ignore[arg-type]  # sampled


def perform(node: dict[str, str], actions: list[Action]) -> None:
    for action in actions:
        match action:
            case Start(spec):
                assert spec.key not in node, "a second process for one key"
                node[spec.key] = "alive"
            case Stop(key):
                assert node[key] == "alive"
                node[key] = "stopping"
            case Forget(key):
                assert node.pop(key) == "exited"


@given(desired_states, node_states)
def test_reaches_the_desired_state_and_then_rests(
    desired: list[ProcessSpec], node: dict[str, str]
) -> None:
    ended = {key for key, life in node.items() if life != "alive"}
    for _ in range(4):
        perform(node, reconcile(desired, seen(node)))
        node.update({key: "exited" for key, life in node.items() if life == "stopping"})
    wanted = {spec.key for spec in desired}
    assert node.keys() == wanted
    assert {key for key, life in node.items() if life == "exited"} == wanted & ended
    assert reconcile(desired, seen(node)) == []


@given(desired_states, node_states)
def test_acting_twice_on_one_state_changes_nothing_more(
    desired: list[ProcessSpec], node: dict[str, str]
) -> None:
    perform(node, reconcile(desired, seen(node)))
    again = reconcile(desired, seen(node))
    assert not [action for action in again if isinstance(action, Stop | Forget)]


@given(desired_states, node_states)
def test_nothing_starts_beside_a_process_that_must_go(
    desired: list[ProcessSpec], node: dict[str, str]
) -> None:
    wanted = {spec.key for spec in desired}
    leaving = [key for key, life in node.items() if key not in wanted and life != "exited"]
    starts = [a for a in reconcile(desired, seen(node)) if isinstance(a, Start)]
    assert not (leaving and starts)


def test_an_exited_process_is_not_started_again() -> None:
    assert reconcile([SPECS[0]], [Seen(KEYS[0], "exited")]) == []


def test_starts_keep_the_order_asked_for() -> None:
    actions = reconcile(SPECS, [])
    assert [action.spec.key for action in actions if isinstance(action, Start)] == KEYS
