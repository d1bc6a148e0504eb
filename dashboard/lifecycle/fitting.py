"""Whether the launches that a revision asks for have room, before anything is changed."""

from collections.abc import Callable, Collection, Sequence

import msgspec

from dashboard.choices import LIVE_REPLICA_STATUSES, ReplicaRole
from dashboard.configuration.declared import Values
from dashboard.configuration.engine import engine_config_of
from dashboard.errors import PlacementError
from dashboard.lifecycle.capacity import capacities, find_placement
from dashboard.models import Deployment, Revision, Slot
from dashboard.placement import NodeCapacity, Placement, place
from dashboard.sentences import Sentence, sentence_of
from engine.config import EngineConfig
from engine.errors import EngineError
from engine.model_config import ModelConfig


def no_place_beside(deployment: Deployment, revision: Revision) -> Sentence | None:
    """Why one launch of the revision has no room next to all that runs; None where it has."""
    return _why_not(lambda: find_placement(_trial(deployment, revision, ReplicaRole.CANDIDATE)))


def no_place_instead(deployment: Deployment, revision: Revision) -> Sentence | None:
    """The same in the place of the first primary."""
    return _why_not(lambda: find_placement(_trial(deployment, revision, ReplicaRole.PRIMARY)))


def no_place_for_more(deployment: Deployment, revision: Revision, more: int) -> Sentence | None:
    """The same of so many further replicas next to all that runs."""
    trial = _trial(deployment, revision, ReplicaRole.CANDIDATE)
    return _why_not(lambda: _place_all(trial, more))


def no_place_for_all(deployment: Deployment, revision: Revision) -> Sentence | None:
    """The same of every replica, once all that there are now have ended."""
    trial = _trial(deployment, revision, ReplicaRole.CANDIDATE)
    count = int(revision.values.get("dp") or 1)
    return _why_not(lambda: _place_all(trial, count, _primaries(deployment)))


def fallback_fits(deployment: Deployment, revision: Revision) -> bool:
    """Whether the fallback has room now, and a launch of the revision beside it once the present
    one has ended."""
    slot = Slot(deployment=deployment, role=ReplicaRole.FALLBACK, index=0)
    trial = _trial(deployment, revision, ReplicaRole.CANDIDATE)

    def work() -> None:
        found = find_placement(slot)
        nodes = capacities(trial, _primaries(deployment))
        place(trial.served_model.shape, trial.engine_config, _with(nodes, found))

    return _why_not(work) is None


def room_for(deployment: Deployment) -> Callable[[ModelConfig, Values], bool]:
    """Whether all replicas with some settings have room once those of now have ended; looked up
    once. While no node is there to be asked, everything has."""
    gone = _primaries(deployment) if deployment.pk else []
    slot = Slot(deployment=deployment, role=ReplicaRole.CANDIDATE, index=0)
    nodes = capacities(slot, gone)
    if not any(node.usable for node in nodes):
        return lambda shape, values: True

    def fits(shape: ModelConfig, values: Values) -> bool:
        count = int(values.get("dp") or 1)
        return _why_not(lambda: _place(shape, engine_config_of(values), nodes, count)) is None

    return fits


def _trial(deployment: Deployment, revision: Revision, role: ReplicaRole) -> Slot:
    return Slot(deployment=deployment, role=role, index=0, revision=revision)


def _primaries(deployment: Deployment) -> list[int]:
    live = deployment.replicas.filter(status__in=LIVE_REPLICA_STATUSES)
    return list(live.filter(role=ReplicaRole.PRIMARY).values_list("pk", flat=True))


def _place_all(trial: Slot, count: int, gone: Collection[int] = ()) -> None:
    _place(trial.served_model.shape, trial.engine_config, capacities(trial, gone), count)


def _place(
    shape: ModelConfig, config: EngineConfig, nodes: Sequence[NodeCapacity], count: int
) -> None:
    for _index in range(count):
        nodes = _with(nodes, place(shape, config, nodes))


def _with(nodes: Sequence[NodeCapacity], placement: Placement) -> list[NodeCapacity]:
    """As they are once this is placed there."""
    found = []
    for node in nodes:
        here = [
            need
            for pk, need in zip(placement.ranks, placement.bytes_per_rank, strict=True)
            if pk == node.pk
        ]
        more = {
            "promised_bytes": node.promised_bytes + sum(here),
            "ranks": node.ranks + len(here),
        }
        found.append(msgspec.structs.replace(node, **more))
    return found


def _why_not(work: Callable[[], object]) -> Sentence | None:
    try:
        work()
    except PlacementError as error:
        return error.sentence
    except EngineError as error:
        return sentence_of(error)
    return None
