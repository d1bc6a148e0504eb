"""Two boxes with agents: one serves while the other is updated, by its BMC or by its agent."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from dashboard import canary
from dashboard.audit import Actor
from dashboard.canary import Measured
from dashboard.choices import UpdateState
from dashboard.lifecycle import updates
from dashboard.lifecycle.orders import heed
from dashboard.models import FirmwarePart, Node, NodeUpdate, Replica, UpdateNote
from dashboard.updates.verifying import verify
from engine.errors import said
from engine.protocol.agent import Firmware
from engine.protocol.firmware import FirmwareOrder, FirmwarePhase, FirmwareState, Part
from tests.dashboard.fake_agent import FakeAgent
from tests.dashboard.firmware_cast import part
from tests.dashboard.fleet_cast import Fleet, Worker, fleet, node, worker
from tests.dashboard.test_fallback import live, run, there
from tests.dashboard.update_cast import (
    NEW,
    add_image,
    administrators,
    both_labs,
    enter_bmc,
    list_parts,
    shortened,
)
from tests.peers.lab_bmc.lab import Lab

__all__ = ["both_labs", "shortened", "worker"]

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 15.0
GOOD = Measured(nats=3.0, first_token=0.1, per_token=0.02)
NOISE = Measured(nats=12.0, first_token=0.1, per_token=0.02)


@dataclass
class Answers:
    """Launches of these agents run nothing: what is asked of them, and what they answer."""

    answer: Measured = GOOD
    asked: list[str] = field(default_factory=list)

    def measure(self, replica: Replica, name: str) -> Measured:
        self.asked.append(replica.launch)
        return self.answer


@pytest.fixture(autouse=True)
def answers(monkeypatch: pytest.MonkeyPatch, shortened: None) -> Answers:
    found = Answers()
    monkeypatch.setattr(canary, "measure", found.measure)
    return found


def state_is(name: str, *states: UpdateState) -> Callable[[], bool]:
    return lambda: NodeUpdate.objects.filter(node__name=name, state__in=states).exists()


async def approve(cast: Fleet, work: Callable[[Actor, Actor], Any]) -> None:
    def both() -> None:
        ada, bob = administrators()
        work(ada, bob)

    await cast.in_database(both)
    await cast.reconcile()


async def story() -> str:
    rows = UpdateNote.objects.select_related("update")
    return "\n".join([f"{note.update.state} {note.state}: {note}" async for note in rows])


@pytest.mark.parametrize("answer", [GOOD, NOISE], ids=["answers well", "answers with noise"])
async def test_what_runs_there_serves_on_from_the_other_box(
    worker: Worker, both_labs: list[Lab], answers: Answers, answer: Measured
) -> None:
    answers.answer = answer
    async with fleet(worker, tp=1) as cast:
        await cast.ask()
        await cast.until(lambda: there("primary", "starting"))
        old = await live("primary")
        name = old.head_node.name
        here, other = (cast.a, cast.b) if name == "node-a" else (cast.b, cast.a)
        await run(here, old.launch, "ready")
        await cast.until_status("ready")
        lab = both_labs[0]
        box = await node(name)

        def begin(ada: Actor, bob: Actor) -> None:
            lab.anew(needs_reset=True)
            enter_bmc(box, lab)
            list_parts(box)
            rollout = updates.draft(
                add_image("BIOS"),
                [box.firmware.get(key="redfish:BIOS")],
                token="1",
                reason="Holes.",
                actor=ada,
            )
            verify(rollout)
            updates.approve(rollout, bob, "Read the notes.")

        await approve(cast, begin)
        await cast.until(lambda: there("candidate", "starting"))
        assert lab.images == []
        copy = await live("candidate")
        assert copy.head_node.name != name
        await run(other, copy.launch, "ready")
        await cast.until(lambda: there("retiring", "stopping"))
        await here.told(None)
        here.start_desired()
        await here.report()
        await cast.until(lambda: bool(lab.resets))
        assert (await cast.fresh()).status == "ready"
        assert (await live("primary")).pk == copy.pk
        await here.go()
        back = cast.dial_again(name)
        back.boot_id = "second"
        async with back:
            await cast.until(lambda: there("candidate", "starting"))
            home = await live("candidate")
            assert home.head_node.name == name
            await run(back, home.launch, "ready")
            await cast.until(state_is(name, UpdateState.RELEASED, UpdateState.HELD))
            update = await NodeUpdate.objects.aget()
            good = answer is GOOD
            assert update.state == ("released" if good else "held"), await story()
            assert good or str(update.reason).startswith("Its answers are noise")
            assert home.launch in answers.asked
            assert (await node(name)).evacuated is not good
            assert (await cast.fresh()).status == "ready"
            assert len(lab.images) == 1


def fwupd_part(box: Node, **changes: Any) -> FirmwarePart:
    fields = {"key": "fwupd:ec", "channel": "fwupd", "component": "uefi", "updatable": True}
    return part(box, "BIOS", "1.0.0", **{**fields, **changes})


@asynccontextmanager
async def ordered(worker: Worker) -> AsyncIterator[tuple[Fleet, FirmwareOrder, NodeUpdate]]:
    """An agent has been told to install something."""
    async with fleet(worker) as cast:
        box = await node("node-a")

        def begin(ada: Actor, bob: Actor) -> None:
            rollout = updates.draft(
                add_image("BIOS"), [fwupd_part(box)], token="1", reason="Holes.", actor=ada
            )
            verify(rollout)
            updates.approve(rollout, bob, "Read the notes.")

        await approve(cast, begin)
        await cast.until(state_is("node-a", UpdateState.UPLOADING))
        [order] = await orders(cast.a, "fwupd")
        yield cast, order, await NodeUpdate.objects.select_related("rollout__image").aget()


async def orders(agent: FakeAgent, *channels: str) -> list[FirmwareOrder]:
    """Once it was told of just these."""
    async with asyncio.timeout(SECONDS):
        while [order.channel for order in agent.desired.orders] != list(channels):
            await agent.receive_desired()
    return list(agent.desired.orders)


async def tell(
    agent: FakeAgent,
    number: int,
    phase: FirmwarePhase,
    percent: float | None = None,
    words: str = "",
) -> None:
    agent.orders = [FirmwareState(id=number, phase=phase, percent=percent, reason=said(words))]
    await agent.report()


async def runs_now(cast: Fleet, agent: FakeAgent, version: str) -> None:
    told = Part(
        key="fwupd:ec",
        component="uefi",
        channel="fwupd",
        name="BIOS",
        active=version,
        updatable=True,
    )
    await agent.say(Firmware([told]))
    await cast.until(lambda: FirmwarePart.objects.filter(active=version).exists())


async def test_the_agent_is_told_what_to_install(worker: Worker) -> None:
    async with ordered(worker) as (cast, order, update):
        image = update.rollout.image
        assert (order.id, order.channel, order.key) == (update.pk, "fwupd", "fwupd:ec")
        assert (order.sha256, order.size, order.version) == (image.sha256, image.size, "1.1.0")
        assert order.path.startswith("/firmware/fetch/")
        await tell(cast.a, order.id, "fetching", 40.0)
        await cast.until(lambda: NodeUpdate.objects.get().percent == 40.0)
        await tell(cast.a, order.id, "installing", 10.0)
        await cast.until(state_is("node-a", UpdateState.APPLYING))
        await runs_now(cast, cast.a, NEW["BIOS"])
        await tell(cast.a, order.id, "done")
        await cast.until(state_is("node-a", UpdateState.RELEASED, UpdateState.HELD))
        assert (await NodeUpdate.objects.aget()).state == UpdateState.RELEASED, await story()
        assert await orders(cast.a) == []


async def test_what_the_agent_says_went_wrong_holds_the_box(worker: Worker) -> None:
    async with ordered(worker) as (cast, order, _update):
        await tell(cast.a, order.id, "failed", words="The battery is low.")
        await cast.until(state_is("node-a", UpdateState.HELD))
        held = await NodeUpdate.objects.aget()
        assert str(held.reason) == "The battery is low."
        assert not (await node("node-b")).evacuated
        assert (await node("node-a")).evacuated
        assert await orders(cast.a) == []


async def test_the_agent_restarts_its_node_for_what_is_staged(worker: Worker) -> None:
    async with ordered(worker) as (cast, order, update):
        await tell(cast.a, order.id, "staged")
        await cast.until(state_is("node-a", UpdateState.REBOOTING))
        [restart] = await orders(cast.a, "reboot")
        assert restart.id == -update.pk
        await tell(cast.a, restart.id, "installing")
        await cast.a.go()
        back = cast.dial_again("node-a")
        back.boot_id = "second"
        async with back:
            await cast.until(state_is("node-a", UpdateState.VALIDATING))
            await runs_now(cast, back, NEW["BIOS"])
            await cast.until(state_is("node-a", UpdateState.RELEASED))


async def test_an_agent_that_may_not_restart_its_node(worker: Worker) -> None:
    async with ordered(worker) as (cast, order, update):
        await tell(cast.a, order.id, "staged")
        await cast.until(state_is("node-a", UpdateState.REBOOTING))
        await tell(cast.a, -update.pk, "failed", words="It was not started with --allow-reboot.")
        await cast.until(state_is("node-a", UpdateState.HELD))
        held = await NodeUpdate.objects.aget()
        assert str(held.reason) == "It was not started with --allow-reboot."


async def test_reports_while_a_worker_is_at_it_are_both_kept(worker: Worker) -> None:
    async with ordered(worker) as (cast, order, update):

        def report_in_the_middle() -> dict[str, Any]:
            fresh = NodeUpdate.objects.get()
            claimed = updates.claim(fresh.pk, fresh.ticket)
            assert claimed is not None
            heed(claimed.node_id, [FirmwareState(id=order.id, phase="installing", percent=3.0)])
            updates.remember(claimed, found="something")
            memory: dict[str, Any] = NodeUpdate.objects.get().memory
            return memory

        await cast.until(lambda: NodeUpdate.objects.get().ticket % 2 == 0)
        memory = await cast.in_database(report_in_the_middle)
        assert memory["found"] == "something"
        assert memory["order"]["percent"] == 3.0
        assert memory["path"] == order.path
        assert update.pk == order.id
