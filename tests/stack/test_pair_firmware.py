"""Both boxes get new firmware, one after the other, while people go on asking."""

import hashlib
import json
import threading
import uuid
from pathlib import Path

import psutil
import pytest

from tests.peers.bmc import make_certificate
from tests.peers.lab_bmc.box import PASSWORD, USER, image
from tests.peers.lab_bmc.lab import Lab, labs
from tests.stack.conftest import Stack, wait_for
from tests.stack.test_change_under_load import load

CONTENT = image("2.0.0")
PREPARE = """
import json
from pathlib import Path
from django.contrib.auth.models import User
from dashboard.audit import Actor
from dashboard.firmware import store
from dashboard.firmware.inventory import read_bmc
from dashboard.lifecycle import updates
from dashboard.models import FirmwareImage, FirmwarePart, Node
from dashboard.updates.verifying import verify
from monitoring.models import NodeSource
from monitoring.sources import RedfishSource
told = json.loads({told!r})
for name, (url, ca) in told["boxes"].items():
    node = Node.objects.get(name=name)
    source = NodeSource(node=node)
    source.take(RedfishSource(name="bmc", url=url, username=told["user"],
                              password=told["password"], ca=ca))
    source.save()
    read_bmc(node)
made = FirmwareImage.objects.create(
    name="bios.bin", component="uefi", fits=["*"], version="2.0.0", size=told["size"],
    sha256=told["sha256"], source="upload", reversible=True, by="ada")
store.path_of(made).write_bytes(Path(told["file"]).read_bytes())
ada = User.objects.get(username="admin")
grace = User.objects.create_superuser("grace", password="another long one")
parts = [FirmwarePart.objects.get(node__name=name, key="redfish:BIOS") for name in told["boxes"]]
rollout = updates.draft(made, parts, token="a-form", reason="A fix.", actor=Actor("admin", ada.pk))
verify(rollout)
updates.approve(rollout, Actor("grace", grace.pk), "Read the notes.")
print("rollout", rollout.pk)
"""
STATE = """
select node.name, one.state, one.reason
from dashboard_nodeupdate one join dashboard_node node on node.id = one.node_id
where one.rollout_id = %s order by one."order"
"""
REST = """
select (select status from dashboard_deployment),
    (select count(*) from dashboard_job where status in ('queued', 'running')),
    (select count(*) from dashboard_node where evacuated)
"""


class Machine(threading.Thread):
    """A box that its BMC can reset: its agent ends hard and finds another start of the machine."""

    def __init__(self, stack: Stack, proc: Path, boxes: dict[str, Lab]) -> None:
        super().__init__()
        self.stack, self.proc, self.boxes = stack, proc, boxes
        self.over = threading.Event()
        self.resets: list[str] = []

    def run(self) -> None:
        seen = dict.fromkeys(self.boxes, 0)
        while not self.over.wait(0.2):
            for name, lab in self.boxes.items():
                if len(lab.resets) > seen[name]:
                    seen[name] = len(lab.resets)
                    self.resets.append(name)
                    boot(self.proc)
                    self.agent(name).kill()

    def agent(self, name: str) -> psutil.Process:
        return self.stack.process_of(
            "engine.agent", f"--state={self.stack.state / 'agents' / name}"
        )


def boot(proc: Path) -> None:
    file = proc / "sys" / "kernel" / "random" / "boot_id"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{uuid.uuid4()}\n")


@pytest.mark.timeout(900)
def test_nobody_notices(own_stack: Stack, tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    boot(proc)
    own_stack.extra["TANDEM_PROC_ROOT"] = str(proc)
    own_stack.start()
    certificates = [make_certificate(tmp_path, name) for name in ("one", "two")]
    with labs(*certificates) as found:
        boxes = dict(zip(("node-a", "node-b"), found, strict=True))
        for lab in found:
            lab.turn(needs_reset=True)
        machine = Machine(own_stack, proc, boxes)
        machine.start()
        try:
            with load(own_stack) as people:
                pk = begin(own_stack, tmp_path, boxes)

                def ended() -> bool:
                    rows = own_stack.rows(STATE, pk)
                    held = [row for row in rows if row[1] == "held"]
                    assert not held, held
                    released = all(state == "released" for _name, state, _reason in rows)
                    return released and own_stack.rows(REST) == [("ready", 0, 0)]

                wait_for("both boxes updated", ended, 600, pause=0.5)
        finally:
            machine.over.set()
            machine.join(10)
        for lab in found:
            assert [sent["sha256"] for sent in lab.images] == [sha256()]
            assert lab.told()["active"]["BIOS"] == "2.0.0"
        assert machine.resets == ["node-a", "node-b"]
    assert not people.failures, people.failures[:3]
    assert len({text for _status, text in people.answers}) == 1
    print(f"{len(people.answers)} answers")


def sha256() -> str:
    return hashlib.sha256(CONTENT).hexdigest()


def begin(stack: Stack, folder: Path, boxes: dict[str, Lab]) -> int:
    file = folder / "bios.bin"
    file.write_bytes(CONTENT)
    told = {
        "boxes": {name: (lab.url, lab.certificate.pem) for name, lab in boxes.items()},
        "user": USER,
        "password": PASSWORD,
        "file": str(file),
        "size": len(CONTENT),
        "sha256": sha256(),
    }
    said = stack.manage("shell", "-c", PREPARE.format(told=json.dumps(told)))
    return int(said.rpartition("rollout ")[2].split()[0])
