"""What happened and what is being done: lifecycle events, jobs, their steps and log."""

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.choices import EventLevel, JobKind, JobStatus, LogLevel, StepStatus
from dashboard.models.deployments import Deployment
from dashboard.models.fleet import Node
from dashboard.models.replicas import Replica
from dashboard.models.slots import Slot
from dashboard.sentences import Sentence, SentenceField


class Event(models.Model):
    """One line of history. `message` is an English template, translated when it is shown."""

    at = models.DateTimeField(_("time"), auto_now_add=True, db_index=True)
    level = models.CharField(
        _("level"), max_length=10, choices=EventLevel.choices, default=EventLevel.INFO
    )
    deployment = models.ForeignKey(
        Deployment,
        models.CASCADE,
        verbose_name=_("deployment"),
        null=True,
        blank=True,
        related_name="events",
    )
    replica = models.ForeignKey(Replica, models.SET_NULL, null=True, blank=True)
    node = models.ForeignKey(
        Node, models.CASCADE, verbose_name=_("node"), null=True, blank=True, related_name="events"
    )
    message = models.CharField(max_length=200)
    params = models.JSONField(default=dict)

    class Meta:
        ordering = ["-at", "-pk"]
        verbose_name = _("event")
        verbose_name_plural = _("events")

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """In the reader's language."""
        return str(Sentence.unpack(self.message, self.params))


class Job(models.Model):
    """Durable work: the row is saved first, the queue is told on commit."""

    kind = models.CharField(_("kind"), max_length=20, choices=JobKind.choices)
    deployment = models.ForeignKey(
        Deployment, models.CASCADE, verbose_name=_("deployment"), related_name="jobs"
    )
    slot = models.ForeignKey(
        Slot, models.CASCADE, verbose_name=_("slot"), null=True, blank=True, related_name="jobs"
    )
    """What it works on; empty for the whole deployment."""
    revision = models.ForeignKey(
        "Revision", models.CASCADE, null=True, blank=True, related_name="jobs"
    )
    """The settings that a change brings in."""
    generation = models.PositiveBigIntegerField()
    """The deployment's generation this job serves; a newer one cancels it."""
    status = models.CharField(
        _("status"), max_length=20, choices=JobStatus.choices, default=JobStatus.QUEUED
    )
    automatic = models.BooleanField(_("automatic"), default=False)
    by = models.CharField(_("asked for by"), max_length=150, blank=True)
    reason = SentenceField(_("reason"), blank=True)
    state = models.JSONField(default=dict)
    """What finished steps left for later ones; never a secret."""
    created = models.DateTimeField(_("created"), auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(_("finished"), null=True)
    touched_at = models.DateTimeField(null=True)
    """Last sign of life from the worker."""
    due_at = models.DateTimeField(null=True)
    """When a worker should look at it next; well past that, the message or the worker was lost."""
    ticket = models.PositiveIntegerField(default=0)
    """Number of the one queued message that may advance the job; all others are void."""
    resumes = models.PositiveSmallIntegerField(default=0)
    """How often in a row it had to be picked up again without getting a step done."""

    class Meta:
        ordering = ["-created", "-pk"]
        verbose_name = _("job")
        verbose_name_plural = _("jobs")

    def __str__(self) -> str:
        return f"{self.kind} {self.deployment}"


class JobStep(models.Model):
    job = models.ForeignKey(Job, models.CASCADE, related_name="steps")
    index = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=40)
    title = models.CharField(max_length=200)
    """English template, translated when it is shown."""
    status = models.CharField(
        _("status"), max_length=20, choices=StepStatus.choices, default=StepStatus.PENDING
    )
    detail = SentenceField(_("detail"), blank=True)
    started_at = models.DateTimeField(_("started"), null=True)
    deadline_at = models.DateTimeField(_("deadline"), null=True)
    finished_at = models.DateTimeField(_("finished"), null=True)

    class Meta:
        ordering = ["index"]
        verbose_name = _("step")
        verbose_name_plural = _("steps")
        constraints = [
            models.UniqueConstraint(fields=["job", "index"], name="one_row_per_step"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def label(self) -> str:
        return gettext(self.title)


class LogLine(models.Model):
    """What a launch's processes, a job, a node's agent or its kernel said; pruned by age and
    count."""

    at = models.DateTimeField(auto_now_add=True)
    launch = models.CharField(max_length=32, blank=True, db_index=True)
    job = models.ForeignKey(Job, models.CASCADE, null=True, related_name="log")
    node = models.ForeignKey(Node, models.CASCADE, null=True, related_name="log")
    """Where it was said; empty for what the panel itself says."""
    source = models.CharField(max_length=60, verbose_name=_("source"))
    """`head`, `rank0`, `agent`, `kernel`, `job` ..."""
    level = models.CharField(
        _("level"), max_length=10, choices=LogLevel.choices, blank=True, default=""
    )
    """Empty where the line does not say."""
    request = models.CharField(max_length=64, blank=True, default="")
    """The API request it belongs to, where the line says so."""
    text = models.TextField()

    class Meta:
        ordering = ["pk"]
        indexes = [BrinIndex(fields=["at"], name="log_by_time", pages_per_range=16)]

    def __str__(self) -> str:
        return self.text
