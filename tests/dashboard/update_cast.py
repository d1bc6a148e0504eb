"""The cast of firmware updates: two boxes with a lab BMC each, images, two administrators."""

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from dashboard import heads, lifecycle, outbox
from dashboard.audit import Actor
from dashboard.choices import UpdateState
from dashboard.firmware import store
from dashboard.lifecycle import nodes, updates
from dashboard.models import FirmwareImage, FirmwarePart, Node, NodeUpdate, Rollout
from dashboard.updates import patience, runner
from dashboard.updates.verifying import verify
from monitoring.models import NodeSource
from monitoring.sources import RedfishSource
from tests.dashboard.fake_agent import inventory
from tests.dashboard.firmware_cast import part
from tests.peers.bmc import make_certificate
from tests.peers.lab_bmc.box import PASSWORD, USER, VERSIONS, image
from tests.peers.lab_bmc.lab import Lab, labs

SECONDS = 15.0
NEW = {"BIOS": "1.1.0", "BMC": "24.11.0"}
KINDS = {"BIOS": "uefi", "BMC": "bmc"}
SHORT = {
    "POLL": 0.02,
    "STALL": timedelta(seconds=0.2),
    "AWAY": timedelta(seconds=0.4),
    "SETTLE": timedelta(seconds=0.1),
    "GRACE": timedelta(seconds=60),
}


@pytest.fixture(scope="session")
def both_labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Lab]]:
    folder = tmp_path_factory.mktemp("bmcs")
    names = ("bmc-a", "bmc-b")
    with labs(*(make_certificate(folder, name) for name in names)) as made:
        yield made


def source_of(lab: Lab, **changes: Any) -> RedfishSource:
    fields = {"url": lab.url, "username": USER, "password": PASSWORD, "ca": lab.certificate.pem}
    return RedfishSource(name="bmc", **{**fields, **changes})


def enter_bmc(node: Node, lab: Lab, **changes: Any) -> None:
    NodeSource.objects.filter(node=node).delete()
    row = NodeSource(node=node)
    row.take(source_of(lab, **changes))
    row.save()


def boot(node: Node, boot_id: str) -> None:
    """Its agent is here, after this start of the machine."""
    nodes.connect(node.pk, f"{node.name} {boot_id}", inventory(node.address, boot_id=boot_id))


def list_parts(node: Node) -> None:
    """As the lab BMC lists them; an update asks it again before it begins."""
    for name, version in VERSIONS.items():
        part(node, name, version, component=KINDS[name], updatable=True)


def add_image(name: str, version: str = "", **changes: Any) -> FirmwareImage:
    """In the store, for parts of this name."""
    content = image(version or NEW[name])
    sha256 = hashlib.sha256(content).hexdigest()
    (store.folder() / sha256).write_bytes(content)
    fields = {
        "name": f"{name.lower()}.bin",
        "component": KINDS[name],
        "fits": [name],
        "version": version or NEW[name],
        "size": len(content),
        "sha256": sha256,
        "source": "upload",
        "by": "ada",
        **changes,
    }
    return FirmwareImage.objects.create(**fields)


@dataclass
class Pair:
    """Two boxes; `a` is updated before `b`. Runs what the panel queues."""

    a: Node
    b: Node
    lab_a: Lab
    lab_b: Lab
    ada: Actor
    bob: Actor
    queue: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    def parts(self, name: str) -> list[FirmwarePart]:
        rows = FirmwarePart.objects.filter(key=f"redfish:{name}")
        return list(rows.select_related("node").order_by("node__name"))

    def draft(self, name: str = "BIOS", token: str = "form-1", **changes: Any) -> Rollout:
        options = {"image": None, "parts": self.parts(name), "actor": self.ada, **changes}
        chosen = options.pop("image") or add_image(name)
        return updates.draft(
            chosen, options.pop("parts"), token=token, reason="It has holes.", **options
        )

    def approved(self, name: str = "BIOS", **changes: Any) -> Rollout:
        rollout = self.draft(name, **changes)
        verify(rollout)
        updates.approve(rollout, self.bob, "Read the notes.")
        return rollout

    def update(self, node: Node, rollout: Rollout | None = None) -> NodeUpdate:
        rows = NodeUpdate.objects.filter(node=node)
        return (rows.filter(rollout=rollout) if rollout else rows).select_related("node").get()

    def work(self) -> None:
        """Run what is queued now; what that queues is for the next time."""
        todo, self.queue = self.queue, []
        for name, arguments in todo:
            if name == updates.RUN_TASK:
                runner.run(*arguments)
            else:
                updates.start_due()

    def until(self, done: Callable[[], bool]) -> None:
        ends = time.monotonic() + SECONDS
        while not done():
            assert time.monotonic() < ends, f"{self.story()}\nqueued: {self.queue}"
            self.work()
            time.sleep(0.01)  # A poll of its own, for what another process does meanwhile.

    def until_state(self, node: Node, state: UpdateState) -> NodeUpdate:
        self.until(lambda: self.update(node).state == state)
        return self.update(node)

    def restart(self, node: Node, lab: Lab, boot_id: str = "second") -> None:
        """Wait until its BMC restarts it, and have it come back."""
        self.until(lambda: bool(lab.resets))
        boot(node, boot_id)

    def held(self, node: Node) -> str:
        return str(self.until_state(node, UpdateState.HELD).reason)

    def overdue(self) -> None:
        """Whoever was at it is long gone, with its messages."""
        self.queue.clear()
        past = timezone.now() - timedelta(hours=1)
        NodeUpdate.objects.filter(ticket__gt=0).update(due_at=past)
        updates.resume_overdue()

    def story(self) -> str:
        lines = []
        for one in NodeUpdate.objects.order_by("order"):
            lines += [f"{one.node} {one.state} {one.reason}", *(f"  {n}" for n in one.notes.all())]
        return "\n".join(lines)

    def nothing_happened_to(self, node: Node, lab: Lab) -> None:
        told = lab.told()
        assert (told["images"], told["resets"]) == ([], [])
        fresh = Node.objects.get(pk=node.pk)
        assert (fresh.evacuated, fresh.schedulable, fresh.status) == (False, True, "online")


@pytest.fixture
def shortened(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    """Nobody waits long, and the store is nobody else's."""
    settings.STATE_DIR = tmp_path
    for name, value in SHORT.items():
        monkeypatch.setattr(patience, name, value)
    monkeypatch.setattr(heads, "ask_stats", lambda replica: None)


@pytest.fixture
def pair(both_labs: list[Lab], monkeypatch: pytest.MonkeyPatch, shortened: None, db: None) -> Pair:
    return make_pair(both_labs, monkeypatch)


def make_pair(both_labs: list[Lab], monkeypatch: pytest.MonkeyPatch) -> Pair:
    boxes = []
    for name, lab, address in zip("ab", both_labs, ("10.0.0.1", "10.0.0.2"), strict=True):
        box, _token = lifecycle.create_node(f"node-{name}", address)
        lab.anew()
        enter_bmc(box, lab)
        boot(box, "first")
        list_parts(box)
        boxes.append(box)
    ada, bob = administrators()
    cast = Pair(boxes[0], boxes[1], both_labs[0], both_labs[1], ada, bob)
    hear_what_is_queued(cast, monkeypatch)
    return cast


def administrators() -> list[Actor]:
    made = [User.objects.create_superuser(name) for name in ("ada", "bob")]
    return [Actor(one.username, one.pk, "form", "10.0.0.9") for one in made]


def hear_what_is_queued(cast: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: the test's own transaction never ends."""
    at_once = SimpleNamespace(on_commit=lambda work, robust=False: work())
    monkeypatch.setattr(outbox, "transaction", at_once)
    monkeypatch.setattr(outbox, "_send", lambda group, message: None)
    monkeypatch.setattr(
        outbox, "_queue", lambda name, arguments, _countdown: cast.queue.append((name, arguments))
    )
