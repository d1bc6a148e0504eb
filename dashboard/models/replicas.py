"""Replicas: launches of a deployment, their ranks and ports. `lifecycle` alone writes a status."""

import msgspec
from django.db import models
from django.utils.translation import gettext_lazy as _

from dashboard.choices import Fault, RankStatus, ReplicaRole, ReplicaStatus
from dashboard.models.catalog import Model
from dashboard.models.deployments import Deployment
from dashboard.models.fleet import Node
from dashboard.sentences import SentenceField
from engine.config import EngineConfig


class Replica(models.Model):
    """One launch of a deployment: a head and its ranks, started together and ended together."""

    deployment = models.ForeignKey(
        Deployment, models.CASCADE, verbose_name=_("deployment"), related_name="replicas"
    )
    role = models.CharField(
        _("role"), max_length=10, choices=ReplicaRole.choices, default=ReplicaRole.PRIMARY
    )
    index = models.PositiveSmallIntegerField(_("replica"), default=0)
    """Which of the deployment's replicas, from 0; the fallback is 0 of its own role."""
    model = models.ForeignKey(
        Model, models.PROTECT, null=True, related_name="launches", verbose_name=_("model")
    )
    """What it serves; null on launches of before it was noted."""
    launch = models.CharField(_("launch"), max_length=32, unique=True)
    token = models.CharField(max_length=64, editable=False)
    """Per-launch secret between head, ranks, agent and gateway; dies with the launch."""
    config = models.JSONField(_("settings"))
    head_node = models.ForeignKey(
        Node, models.PROTECT, verbose_name=_("node of the head"), related_name="heads"
    )
    host = models.CharField(_("address"), max_length=253)
    http_port = models.PositiveIntegerField(_("HTTP port"))
    control_port = models.PositiveIntegerField(_("control port"))
    status = models.CharField(
        _("status"), max_length=20, choices=ReplicaStatus.choices, default=ReplicaStatus.STARTING
    )
    reason = SentenceField(_("reason"), blank=True)
    fault = models.CharField(max_length=10, choices=Fault.choices, blank=True)
    """What kind of end it came to; decides which of several reports names the cause."""
    head_status = models.CharField(
        _("status of the head"),
        max_length=20,
        choices=RankStatus.choices,
        default=RankStatus.WAITING,
    )
    head_pid = models.PositiveIntegerField(_("PID of the head"), null=True)
    created = models.DateTimeField(_("created"), auto_now_add=True)
    ready_at = models.DateTimeField(_("ready since"), null=True)
    recoveries = models.PositiveIntegerField(_("recoveries"), default=0)
    """Times its ranks were started anew under it."""
    recovering_since = models.DateTimeField(null=True)
    gated = models.BooleanField(default=False)
    """It takes over from a fallback that answers, so its job sees it answer first."""
    ended_at = models.DateTimeField(_("ended"), null=True)
    """When it failed or was stopped; its last processes may end a little later."""

    class Meta:
        ordering = ["-created"]
        verbose_name = _("launch")
        verbose_name_plural = _("launches")
        constraints = [
            models.UniqueConstraint(
                fields=["deployment", "role", "index"],
                condition=models.Q(
                    status__in=["starting", "ready", "recovering", "draining", "stopping"]
                ),
                name="one_live_launch_per_replica",
            )
        ]

    def __str__(self) -> str:
        return f"{self.deployment}/{self.launch}"

    @property
    def engine_config(self) -> EngineConfig:
        return msgspec.convert(self.config, EngineConfig)

    @property
    def base_url(self) -> str:
        return f"http://{self.host}:{self.http_port}"


class Rank(models.Model):
    """One engine worker of a replica, on one node."""

    replica = models.ForeignKey(Replica, models.CASCADE, related_name="ranks")
    rank = models.PositiveSmallIntegerField(_("rank"))
    stage = models.PositiveSmallIntegerField()
    stage_rank = models.PositiveSmallIntegerField()
    node = models.ForeignKey(Node, models.PROTECT, verbose_name=_("node"), related_name="ranks")
    status = models.CharField(
        _("status"), max_length=20, choices=RankStatus.choices, default=RankStatus.WAITING
    )
    detail = SentenceField(_("detail"), blank=True)
    progress = models.FloatField(null=True)
    pid = models.PositiveIntegerField(_("PID"), null=True)
    exit_code = models.IntegerField(_("exit code"), null=True)
    kv_heads = models.PositiveSmallIntegerField(null=True)
    first_layer = models.PositiveSmallIntegerField(null=True)
    last_layer = models.PositiveSmallIntegerField(null=True)
    weight_bytes = models.BigIntegerField(null=True)
    kv_bytes = models.BigIntegerField(null=True)
    kernel = models.CharField(_("kernel"), max_length=80, blank=True)
    transport = models.CharField(_("transport"), max_length=40, blank=True)
    planned_bytes = models.BigIntegerField(null=True)
    """Memory that its placement counted on."""

    class Meta:
        ordering = ["rank"]
        verbose_name = _("rank")
        verbose_name_plural = _("ranks")
        constraints = [
            models.UniqueConstraint(fields=["replica", "rank"], name="one_row_per_rank"),
        ]

    def __str__(self) -> str:
        return f"rank {self.rank}"


class PortLease(models.Model):
    """A port on a node, taken for one launch; the unique pair is what makes it a lease."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="port_leases")
    port = models.PositiveIntegerField()
    launch = models.CharField(max_length=32, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["node", "port"], name="one_lease_per_port"),
        ]

    def __str__(self) -> str:
        return f"{self.node}:{self.port}"
