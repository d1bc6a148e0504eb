"""What the box behind the BMC has, is told to do, and does wrong when a test wants it to."""

import hashlib
import threading
import time
import urllib.request
from dataclasses import asdict, dataclass, field
from typing import Any

USER, PASSWORD = "updater", 'pa"ss word'
MAGIC = b"LAB FIRMWARE "
FETCH_SECONDS = 10.0
SYSTEM = "11111111-0000-4000-8000-000000000001"
ATTRIBUTES = {"BootMode": "Uefi", "PowerProfile": "Quiet", "AdminPassword": "hunter2"}
VERSIONS = {"BIOS": "1.0.0", "BMC": "24.10.1"}


def image(version: str, size: int = 300_000) -> bytes:
    """A file that the BMC understands."""
    head = MAGIC + version.encode() + b"\n"
    return (head + bytes(range(251)) * (size // 251 + 1))[:size]


@dataclass
class Knobs:
    """`fault` of a task: "", `verify`, `stall`, `unchanged` or `person`; of an upload: `vanish` or
    `refuse`; of both: nothing."""

    fault: str = ""
    seconds: float = 0.001
    """How long a task takes."""
    silent_after: int = 0
    """Looks at a task after which nobody is answered; 0: never."""
    silent_seconds: float = 0.0
    silent_asks: int = 0
    """Or until so many have asked in vain, however long that takes."""
    looks: int = 0
    """Looks at a task before it can be done."""
    busy: bool = False
    """It answers 503 instead of nothing at all."""
    reap_after: int = 0
    """Looks at a task after which it is gone; 0: never."""
    accepted: str = "task"
    """The shape of a 202: `task`, `empty`, `monitor`, `nothing`."""
    multipart: bool = True
    service: dict[str, Any] = field(default_factory=dict)
    """What its update service says of itself beside the rest."""
    sessions: bool = True
    needs_reset: bool = False
    """Nothing runs before a reset, whatever was asked for."""
    reset_fails: bool = False
    resets_seconds: float = 0.0
    """How long the BMC itself is away after its own restart."""
    forgets: dict[str, str] = field(default_factory=dict)
    """Settings that the next reset of the node puts back."""
    supply: str = "OK"
    certificate: str = ""
    """Another one than it came with."""


@dataclass
class Job:
    """One update."""

    targets: list[str]
    when: str
    began: float
    content: bytes | None = None
    problem: str = ""
    looks: int = 0
    over: bool = False


@dataclass
class Box:
    knobs: Knobs = field(default_factory=Knobs)
    active: dict[str, str] = field(default_factory=lambda: dict(VERSIONS))
    staged: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=lambda: dict(ATTRIBUTES))
    jobs: dict[str, Job] = field(default_factory=dict)
    images: list[dict[str, Any]] = field(default_factory=list)
    """Every one that it got, whole or not."""
    resets: list[dict[str, str]] = field(default_factory=list)
    failed_signins: int = 0
    silent_until: float = 0.0
    silent_asks: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def begin_anew(self) -> None:
        fresh = Box()
        with self.lock:
            for name in ("knobs", "active", "staged", "attributes", "jobs", "images", "resets"):
                setattr(self, name, getattr(fresh, name))
            self.failed_signins, self.silent_until, self.silent_asks = 0, 0.0, 0

    def turn(self, knobs: dict[str, Any]) -> None:
        if knobs.pop("began", False):
            self.begin([], "Immediate", None)
        with self.lock:
            self.knobs = Knobs(**(asdict(self.knobs) | knobs))

    def told(self) -> dict[str, Any]:
        with self.lock:
            return {
                "active": self.active,
                "staged": self.staged,
                "images": self.images,
                "resets": self.resets,
                "tasks": len(self.jobs),
                "failed_signins": self.failed_signins,
            }

    @property
    def silent(self) -> bool:
        return self.silent_asks > 0 or time.monotonic() < self.silent_until

    def go_silent(self, seconds: float, asks: int = 0) -> None:
        self.silent_until, self.silent_asks = time.monotonic() + seconds, asks

    def ask_in_vain(self) -> None:
        self.silent_asks = max(0, self.silent_asks - 1)

    def got(self, content: bytes, way: str, whole: bool, parameters: dict[str, Any]) -> None:
        with self.lock:
            self.images.append(
                {
                    "way": way,
                    "whole": whole,
                    "bytes": len(content),
                    "sha256": hashlib.sha256(content).hexdigest(),
                    "parameters": parameters,
                }
            )

    def begin(self, targets: list[str], when: str, content: bytes | None) -> str:
        with self.lock:
            number = str(len(self.jobs) + 1)
            self.jobs[number] = Job(targets, when, time.monotonic(), content)
            return number

    def fetch(self, number: str, url: str) -> None:
        """As real ones do: after the request was accepted."""
        job = self.jobs[number]
        try:
            with urllib.request.urlopen(url, timeout=FETCH_SECONDS) as answer:
                content = answer.read()
        except OSError as error:
            job.problem = f"TransferFailed: {error}"
            return
        self.got(content, "fetch", True, {"url": url})
        job.content = content

    def state_of(self, number: str) -> tuple[str, int, list[dict[str, str]]]:
        """TaskState, percentage, messages; what is due by now happens here."""
        with self.lock:
            job = self.jobs[number]
            share = min(1.0, (time.monotonic() - job.began) / self.knobs.seconds)
            if self.knobs.looks:
                share = min(share, 0.9 * job.looks / self.knobs.looks)
            if self.knobs.looks and job.looks >= self.knobs.looks:
                share = 1.0
            if self.knobs.fault == "stall":
                share = min(share, 0.4)
            if problem := self._problem(job, share):
                return "Exception", int(share * 100), [problem]
            if self.knobs.fault == "person":
                words = "Confirm on the front panel."
                return "UserIntervention", 10, [{"MessageId": "Lab.1.0.Wait", "Message": words}]
            if share < 1.0 or job.content is None:
                words = "The image is being written."
                running = {"MessageId": "Update.1.0.TransferringToComponent", "Message": words}
                return "Running", min(99, int(share * 100)), [running]
            self._finish(job)
            later = self._later(job) and self.knobs.fault != "unchanged"
            ends = "AwaitToActivate" if later else "UpdateSuccessful"
            return "Completed", 100, [{"MessageId": f"Update.1.0.{ends}"}]

    def settle(self) -> None:
        """What is due happens, though nobody looks at a task."""
        for number in list(self.jobs):
            self.state_of(number)

    def _problem(self, job: Job, share: float) -> dict[str, str] | None:
        if job.problem:
            return {"MessageId": "Update.1.0.TransferFailed", "Message": job.problem}
        bad = job.content is not None and not job.content.startswith(MAGIC)
        if share > 0.5 and (bad or self.knobs.fault == "verify"):
            words = "The signature of the image is not valid."
            return {"MessageId": "Update.1.0.VerificationFailed", "Message": words}
        return None

    def _later(self, job: Job) -> bool:
        return job.when == "OnReset" or self.knobs.needs_reset

    def _finish(self, job: Job) -> None:
        if job.over or self.knobs.fault == "unchanged":
            return
        job.over = True
        assert job.content is not None
        version = job.content[len(MAGIC) :].split(b"\n", 1)[0].decode()
        where = self.staged if self._later(job) else self.active
        for target in job.targets:
            where[target.rsplit("/", 1)[-1]] = version

    def reset(self, noun: str, kind: str) -> None:
        """What was staged runs now: the BMC's own with its restart, the rest with the node's."""
        with self.lock:
            self.resets.append({"of": noun, "kind": kind})
            if self.knobs.reset_fails:
                return
            itself = noun == "Manager"
            if not itself:
                self.attributes |= self.knobs.forgets
            for name in [one for one in self.staged if (one == "BMC") == itself]:
                self.active[name] = self.staged.pop(name)
            if itself and self.knobs.resets_seconds:
                self.go_silent(self.knobs.resets_seconds)
