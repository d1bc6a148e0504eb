"""Whoever waits for a member that died, stopped or fell silent is told so, and nothing is left."""

import gc
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest
import torch
from torch._C._distributed_c10d import HashStore

from engine.errors import RankError
from engine.parallel import open_store
from engine.parallel.activity import ActivityLog
from engine.parallel.links import GlooLinks
from engine.parallel.sharing import Offer, Refusal, host_identity, share_memory
from engine.parallel.shm import ShmGroup
from tests.engine import group_process

PATIENCE = 30.0


class Pair:
    """Member 0 is the test, member 1 a process that does only what it is told."""

    def __init__(self, silence: float) -> None:
        self.store = open_store("127.0.0.1", timedelta(seconds=PATIENCE))
        self.peer = group_process.start(1, 2, self.store.port, silence)
        self.activity = ActivityLog()
        self.group = ShmGroup(share_memory(self.store, 0, 2, "token", silence), self.activity)

    def meet(self) -> None:
        group_process.tell(self.peer, 100)
        self.group.all_reduce(torch.zeros(100))
        group_process.answer(self.peer)

    def end(self) -> None:
        group_process.end(self.peer)
        self.group.close()


@pytest.fixture
def patient() -> Iterator[Pair]:
    pair = Pair(PATIENCE)
    yield pair
    pair.end()


@pytest.fixture
def impatient() -> Iterator[Pair]:
    pair = Pair(2.5)
    yield pair
    pair.end()


def when_waiting(pair: Pair, number: signal.Signals) -> str:
    """What the waiting member hears once its peer gets this signal in mid exchange."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(pair.group.all_reduce, torch.zeros(100))
        deadline = time.monotonic() + PATIENCE
        while pair.activity.doing != "all-reduce":
            assert time.monotonic() < deadline
        os.kill(pair.peer.pid, number)
        with pytest.raises(RankError) as caught:
            waiting.result(PATIENCE)
    return str(caught.value)


def test_a_peer_killed_while_others_wait_for_it_is_named(patient: Pair) -> None:
    patient.meet()
    assert when_waiting(patient, signal.SIGKILL) == "Lost the connection to peer 1 of the group."
    assert patient.activity.doing == "all-reduce", "what went wrong stays to be read"


def test_a_stopped_peer_counts_as_silent_after_the_time_given(impatient: Pair) -> None:
    impatient.meet()
    said = when_waiting(impatient, signal.SIGSTOP)
    assert said == "Peer 1 of the group was silent for 2.5 s."


def test_what_a_peer_sent_before_it_died_still_arrives(patient: Pair) -> None:
    group_process.tell(patient.peer, 100)
    patient.group.all_reduce(torch.zeros(100))
    group_process.tell(patient.peer, 100)
    slot_is_full = patient.group.all_reduce(torch.zeros(100))
    group_process.end(patient.peer)
    assert torch.equal(slot_is_full, group_process.numbers(1, 100))


def test_messages_to_and_from_a_dead_peer_are_refused(patient: Pair) -> None:
    patient.meet()
    group_process.end(patient.peer)
    with pytest.raises(RankError, match="peer 1"):
        patient.group.receive((4,), 1)
    with pytest.raises(RankError, match="peer 1"):
        patient.group.send(torch.zeros(2 << 20), 1)


def mappings() -> int:
    gc.collect()
    return Path("/proc/self/maps").read_text().count("memfd:tandem")


def test_killed_members_leave_nothing_behind() -> None:
    before, files = mappings(), set(os.listdir("/proc/self/fd"))
    pair = Pair(PATIENCE)
    pair.meet()
    assert mappings() > before
    pair.end()
    del pair
    assert mappings() == before
    assert set(os.listdir("/proc/self/fd")) <= files
    assert not [name for name in os.listdir("/dev/shm") if "tandem" in name]


def test_a_silent_peer_is_told_over_gloo_too() -> None:
    store, patience = HashStore(), timedelta(seconds=2)
    with ThreadPoolExecutor(2) as pool:
        made = [pool.submit(GlooLinks, store, rank, 2, "127.0.0.1", patience) for rank in range(2)]
        links = [link.result(PATIENCE) for link in made]
    with pytest.raises(RankError, match="connection to peer 1"):
        links[0].exchange({}, {1: torch.empty(4)})
    for link in links:
        link.close()


def test_where_the_library_cannot_be_kept_there_are_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("engine.parallel.sharing.load_library", full)
    store = open_store("127.0.0.1", timedelta(seconds=PATIENCE))
    store.set("offer1", msgspec.json.encode(Offer(host=host_identity())).decode())
    with pytest.raises(Refusal, match="No space left on device"):
        share_memory(store, 0, 2, "token", PATIENCE)
