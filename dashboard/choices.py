"""Statuses with their labels and allowed transitions. Only `lifecycle` writes a status."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class NodeStatus(models.TextChoices):
    PENDING = "pending", _("Waiting for its agent")
    ONLINE = "online", _("Online")
    OFFLINE = "offline", _("Offline")


class DeploymentStatus(models.TextChoices):
    STOPPED = "stopped", _("Stopped")
    STARTING = "starting", _("Starting")
    READY = "ready", _("Ready")
    RECOVERING = "recovering", _("Recovering")
    """Its ranks are being started anew in place; open answers wait and go on."""
    DEGRADED = "degraded", _("Degraded")
    """It answers, but not as wanted: the fallback does, or fewer replicas than there should be."""
    RESTARTING = "restarting", _("Restarting")
    STOPPING = "stopping", _("Stopping")
    FAILED = "failed", _("Failed")


class LogLevel(models.TextChoices):
    """As a line says itself; many do not."""

    DEBUG = "debug", _("Debug")
    INFO = "info", _("Info")
    WARNING = "warning", _("Warning")
    ERROR = "error", _("Error")
    CRITICAL = "critical", _("Critical")


class ReplicaRole(models.TextChoices):
    PRIMARY = "primary", _("Primary")
    FALLBACK = "fallback", _("Fallback")
    CANDIDATE = "candidate", _("Candidate")
    """Of a change that is being applied: it gets no requests before it has proved itself."""
    RETIRING = "retiring", _("Retiring")
    """Of before a change: it finishes its answers, or takes over again if the change fails."""


class FallbackMode(models.TextChoices):
    COLD = "cold", _("Started when it is needed")
    RESIDENT = "resident", _("Always running")


class ReturnMode(models.TextChoices):
    AUTO = "auto", _("By itself")
    CLICK = "click", _("When somebody says so")


class ReplicaStatus(models.TextChoices):
    STARTING = "starting", _("Starting")
    READY = "ready", _("Ready")
    RECOVERING = "recovering", _("Recovering")
    DRAINING = "draining", _("Finishing its answers")
    """It is given no new requests and ends once those it has are answered."""
    STOPPING = "stopping", _("Stopping")
    STOPPED = "stopped", _("Stopped")
    FAILED = "failed", _("Failed")


class RankStatus(models.TextChoices):
    WAITING = "waiting", _("Waiting for its node")
    STARTING = "starting", _("Starting")
    LOADING = "loading", _("Loading")
    READY = "ready", _("Ready")
    EXITED = "exited", _("Exited")


class Fault(models.TextChoices):
    """Why a replica failed, from what explains least to what explains most.

    One death makes every other process of the replica end too, and the reports come in any order.
    """

    DEADLINE = "deadline", _("Deadline passed")
    FOLLOWED = "followed", _("Ended with its head")
    HEAD = "head", _("Head failed")
    EXIT = "exit", _("Process ended")
    NODE = "node", _("Node offline")
    STOPPED = "stopped", _("Agent shut down")
    LOST = "lost", _("Agent restarted")
    SIGNAL = "signal", _("Process killed")

    @property
    def strength(self) -> int:
        return list(Fault).index(self)


CRASHES = frozenset({Fault.FOLLOWED, Fault.HEAD, Fault.EXIT, Fault.SIGNAL})
"""Faults of the engine itself: these count towards giving up."""


class JobKind(models.TextChoices):
    DEPLOY = "deploy", _("Deploy")
    STOP = "stop", _("Stop")
    RESTART = "restart", _("Restart")
    DRAIN = "drain", _("Stand down")
    CHANGE = "change", _("Change settings")
    MOVE = "move", _("Move off a node")


class JobStatus(models.TextChoices):
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")


class RequestOutcome(models.TextChoices):
    """Of a request to the API."""

    ANSWERED = "answered", _("Answered")
    CUT_OFF = "cut_off", _("Cut off")
    """Its caller went before the end, or this process did and the caller had to come back."""
    REFUSED = "refused", _("Refused")
    """By rule, or because there was too much to do."""
    FAILED = "failed", _("Failed")


class StepStatus(models.TextChoices):
    PENDING = "pending", _("Pending")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")
    SKIPPED = "skipped", _("Skipped")


class EventLevel(models.TextChoices):
    INFO = "info", _("Information")
    WARNING = "warning", _("Warning")
    ERROR = "error", _("Error")


class MessageRole(models.TextChoices):
    SYSTEM = "system", _("System")
    USER = "user", _("User")
    ASSISTANT = "assistant", _("Assistant")


class MessageStatus(models.TextChoices):
    STREAMING = "streaming", _("Answering")
    DONE = "done", _("Done")
    STOPPED = "stopped", _("Stopped")
    FAILED = "failed", _("Failed")


class Role(models.TextChoices):
    """What a person may do; each may also do what those before it may."""

    VIEWER = "viewer", _("Viewer")
    MEMBER = "member", _("Member")
    OPERATOR = "operator", _("Operator")
    ADMIN = "admin", _("Administrator")

    @property
    def strength(self) -> int:
        return list(Role).index(self)


class RevisionOrigin(models.TextChoices):
    """Where a revision of settings came from."""

    FORM = "form", _("Form")
    API = "api", _("API")
    FILE = "file", _("File")
    PRESET = "preset", _("Preset")
    ROLLBACK = "rollback", _("Back to an earlier one")
    FIRST = "first", _("First settings")


class RevisionState(models.TextChoices):
    PROPOSED = "proposed", _("Saved, not applied")
    APPLYING = "applying", _("Being applied")
    CURRENT = "current", _("In use")
    PAST = "past", _("Replaced")
    FAILED = "failed", _("Not taken")
    """It was tried and rolled back, or refused before anything changed."""


class Component(models.TextChoices):
    """What firmware is for."""

    BMC = "bmc", _("BMC")
    UEFI = "uefi", "UEFI"
    EC = "ec", _("Embedded controller")
    NIC = "nic", _("Network adapter")
    GPU = "gpu", _("Accelerator")
    DRIVE = "drive", _("Drive")
    PD = "pd", _("USB power controller")
    DRIVER = "driver", _("Driver")
    KERNEL = "kernel", _("Kernel")
    OTHER = "other", _("Other")


class UpdateState(models.TextChoices):
    """Of one node's firmware update; see `UPDATE_TRANSITIONS`."""

    DRAFT = "draft", _("Draft")
    VERIFIED = "verified", _("Verified")
    APPROVED = "approved", _("Approved")
    DRAINING = "draining", _("Moving work off the node")
    PRECHECK = "precheck", _("Checking beforehand")
    UPLOADING = "uploading", _("Uploading")
    APPLYING = "applying", _("Applying")
    AWAITING_RESET = "awaiting-reset", _("Waiting for the reset")
    REBOOTING = "rebooting", _("Rebooting")
    VALIDATING = "validating", _("Validating")
    RELEASED = "released", _("Released")
    HELD = "held", _("Failed and held")
    CANCELLED = "cancelled", _("Cancelled")
    """Before anything was applied."""


LIVE_REPLICA_STATUSES = frozenset(
    {
        ReplicaStatus.STARTING,
        ReplicaStatus.READY,
        ReplicaStatus.RECOVERING,
        ReplicaStatus.DRAINING,
    }
)
ANSWERING_REPLICA_STATUSES = frozenset({ReplicaStatus.READY, ReplicaStatus.RECOVERING})
"""A recovering one takes requests and keeps them until its ranks are back."""
ANSWERING_STATUSES = frozenset(
    {DeploymentStatus.READY, DeploymentStatus.DEGRADED, DeploymentStatus.RECOVERING}
)
ACTIVE_JOB_STATUSES = frozenset({JobStatus.QUEUED, JobStatus.RUNNING})
TERMINAL_JOB_STATUSES = frozenset({JobStatus.DONE, JobStatus.FAILED, JobStatus.CANCELLED})

_UP_AND_DOWN = frozenset(
    {
        DeploymentStatus.READY,
        DeploymentStatus.RECOVERING,
        DeploymentStatus.DEGRADED,
        DeploymentStatus.RESTARTING,
        DeploymentStatus.FAILED,
        DeploymentStatus.STOPPING,
    }
)
"""What one that should run may become as its replicas come and go."""

DEPLOYMENT_TRANSITIONS: dict[DeploymentStatus, frozenset[DeploymentStatus]] = {
    DeploymentStatus.STOPPED: frozenset({DeploymentStatus.STARTING}),
    DeploymentStatus.STARTING: _UP_AND_DOWN,
    DeploymentStatus.READY: _UP_AND_DOWN - {DeploymentStatus.READY},
    DeploymentStatus.RECOVERING: _UP_AND_DOWN - {DeploymentStatus.RECOVERING},
    DeploymentStatus.DEGRADED: _UP_AND_DOWN - {DeploymentStatus.DEGRADED},
    DeploymentStatus.RESTARTING: _UP_AND_DOWN,
    DeploymentStatus.STOPPING: frozenset({DeploymentStatus.STOPPED, DeploymentStatus.FAILED}),
    DeploymentStatus.FAILED: (_UP_AND_DOWN | {DeploymentStatus.STARTING})
    - {DeploymentStatus.FAILED},
}

UPDATE_TRANSITIONS: dict[UpdateState, frozenset[UpdateState]] = {
    UpdateState.DRAFT: frozenset({UpdateState.VERIFIED, UpdateState.CANCELLED}),
    UpdateState.VERIFIED: frozenset({UpdateState.APPROVED, UpdateState.CANCELLED}),
    UpdateState.APPROVED: frozenset({UpdateState.DRAINING, UpdateState.CANCELLED}),
    UpdateState.DRAINING: frozenset(
        {UpdateState.PRECHECK, UpdateState.HELD, UpdateState.CANCELLED}
    ),
    UpdateState.PRECHECK: frozenset(
        {UpdateState.UPLOADING, UpdateState.HELD, UpdateState.CANCELLED}
    ),
    UpdateState.UPLOADING: frozenset({UpdateState.APPLYING, UpdateState.HELD}),
    UpdateState.APPLYING: frozenset(
        {UpdateState.AWAITING_RESET, UpdateState.VALIDATING, UpdateState.HELD}
    ),
    UpdateState.AWAITING_RESET: frozenset({UpdateState.REBOOTING, UpdateState.HELD}),
    UpdateState.REBOOTING: frozenset({UpdateState.VALIDATING, UpdateState.HELD}),
    UpdateState.VALIDATING: frozenset({UpdateState.RELEASED, UpdateState.HELD}),
    UpdateState.HELD: frozenset({UpdateState.RELEASED}),
    UpdateState.RELEASED: frozenset(),
    UpdateState.CANCELLED: frozenset(),
}
"""From applying on nothing is cancelled; a held node is released by a person."""
UNDERWAY_UPDATE_STATES = frozenset(
    {
        UpdateState.DRAINING,
        UpdateState.PRECHECK,
        UpdateState.UPLOADING,
        UpdateState.APPLYING,
        UpdateState.AWAITING_RESET,
        UpdateState.REBOOTING,
        UpdateState.VALIDATING,
        UpdateState.HELD,
    }
)
"""The node is out of service for it; at most one node of the fleet is."""
