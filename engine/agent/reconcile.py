"""From what should run and what does run to what must be done. Pure."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from engine.protocol.launch import ProcessSpec

Life = Literal["alive", "stopping", "exited"]


class Seen(msgspec.Struct, frozen=True):
    """One process the node knows of."""

    key: str
    life: Life


class Start(msgspec.Struct, frozen=True):
    spec: ProcessSpec


class Stop(msgspec.Struct, frozen=True):
    key: str


class Forget(msgspec.Struct, frozen=True):
    """Drop an exited process from the report: nobody asks for it any more."""

    key: str


Action = Start | Stop | Forget


def reconcile(desired: Sequence[ProcessSpec], seen: Sequence[Seen]) -> list[Action]:
    """What to do now; nothing when the node is as it should be.

    One that ended for good is not started again (restart.py decides which did): a new try is a new
    launch with a new key. Nothing starts while something that must go still lives, so that memory,
    cores and ports are free.
    """
    wanted = {spec.key: spec for spec in reversed(desired)}
    known = {process.key for process in seen}
    leaving = [process for process in seen if process.key not in wanted]
    actions: list[Action] = []
    for process in leaving:
        if process.life == "alive":
            actions.append(Stop(process.key))
        elif process.life == "exited":
            actions.append(Forget(process.key))
    if all(process.life == "exited" for process in leaving):
        actions += [Start(spec) for key, spec in reversed(wanted.items()) if key not in known]
    return actions
