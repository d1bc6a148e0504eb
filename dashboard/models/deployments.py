"""Deployments, their replicas and ranks. `lifecycle` is the only writer of any status here."""

from typing import cast

import msgspec
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from dashboard.choices import DeploymentStatus, Fault, RankStatus, ReplicaStatus
from dashboard.models.catalog import Model
from dashboard.models.fleet import Node
from dashboard.sentences import SentenceField
from engine.config import INT4_GROUPS, Dtype, EngineConfig, KvDtype, ParallelPlan, Transport

DTYPE_CHOICES = [
    ("fp32", _("fp32 (reference)")),
    ("bf16", "bf16"),
    ("int8", "int8 (W8A8)"),
    ("int4", "int4 (W4A8)"),
    ("fp8", "fp8 (e4m3)"),
]

KV_DTYPE_CHOICES = [
    ("fp32", _("fp32 (exact)")),
    ("bf16", _("bf16 (half the size)")),
    ("int8", _("int8 (a quarter of the size)")),
    ("fp8", _("fp8 (a quarter of the size)")),
]

INT4_GROUP_CHOICES = [(columns, str(columns)) for columns in INT4_GROUPS]

TRANSPORT_CHOICES = [("tcp", _("TCP (lowest latency)")), ("gloo", _("gloo (torch.distributed)"))]


class Deployment(models.Model):
    """A model under a route name, as somebody wants it to run."""

    name = models.SlugField(
        _("route name"), max_length=80, unique=True, help_text=_("What programs put in `model`.")
    )
    model = models.ForeignKey(
        Model, models.PROTECT, related_name="deployments", verbose_name=_("model")
    )
    driver = models.CharField(_("driver"), max_length=20, default="embedded")
    tp = models.PositiveSmallIntegerField(
        _("tensor parallel"),
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(64)],
        help_text=_("Ranks that share every layer."),
    )
    pp = models.PositiveSmallIntegerField(
        _("pipeline parallel"),
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(64)],
        help_text=_("Stages of consecutive layers."),
    )
    dtype = models.CharField(
        _("number type"),
        max_length=8,
        choices=DTYPE_CHOICES,
        default="fp32",
        help_text=_(
            "Of the weights; int8 and int4 multiply int8 activations. Fewer bits lose a little "
            "quality."
        ),
    )
    int4_group = models.PositiveSmallIntegerField(
        _("int4 group"),
        choices=INT4_GROUP_CHOICES,
        default=32,
        help_text=_(
            "Columns that share one scale, with int4 weights. Wider groups cost quality, most of "
            "all where the file has 4-bit weights already."
        ),
    )
    kv_dtype = models.CharField(
        _("KV cache number type"),
        max_length=8,
        choices=KV_DTYPE_CHOICES,
        default="fp32",
        help_text=_("Fewer bits let longer or more conversations fit."),
    )
    transport = models.CharField(
        _("links between ranks"),
        max_length=8,
        choices=TRANSPORT_CHOICES,
        default="tcp",
        help_text=_("How ranks exchange what they computed."),
    )
    max_model_len = models.PositiveIntegerField(
        _("context length"),
        null=True,
        blank=True,
        validators=[MinValueValidator(64)],
        help_text=_("In tokens; empty means the model's own limit."),
    )
    max_batch_size = models.PositiveSmallIntegerField(
        _("batch size"), default=32, validators=[MinValueValidator(1), MaxValueValidator(256)]
    )
    kv_cache_tokens = models.PositiveIntegerField(
        _("KV cache"),
        default=16384,
        validators=[MinValueValidator(64)],
        help_text=_("In tokens, shared by all conversations."),
    )
    target_itl_ms = models.PositiveIntegerField(
        _("target time per token"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(60_000)],
        help_text=_(
            "In milliseconds. The batch shrinks while tokens take longer and grows while there is "
            "room; empty always fills it."
        ),
    )
    wanted = models.BooleanField(_("should run"), default=False, editable=False)
    status = models.CharField(
        _("status"),
        max_length=20,
        choices=DeploymentStatus.choices,
        default=DeploymentStatus.STOPPED,
        editable=False,
    )
    reason = SentenceField(_("reason"), blank=True, editable=False)
    generation = models.PositiveBigIntegerField(default=0, editable=False)
    restarts = models.PositiveIntegerField(_("restarts"), default=0, editable=False)
    created = models.DateTimeField(_("created"), auto_now_add=True)
    changed = models.DateTimeField(_("changed"), auto_now=True)
    ready_at = models.DateTimeField(_("ready since"), null=True, blank=True, editable=False)
    down_since = models.DateTimeField(null=True, editable=False)
    """When the failure began that automatic restarts are still working on."""

    class Meta:
        ordering = ["name"]
        verbose_name = _("deployment")
        verbose_name_plural = _("deployments")

    def __str__(self) -> str:
        return self.name

    @property
    def plan(self) -> ParallelPlan:
        return ParallelPlan(tp=self.tp, pp=self.pp)

    @property
    def engine_config(self) -> EngineConfig:
        """Raises ConfigError when the settings do not fit together."""
        return EngineConfig(
            plan=self.plan,
            dtype=cast(Dtype, self.dtype),
            kv_dtype=cast(KvDtype, self.kv_dtype),
            int4_group=self.int4_group,
            transport=cast(Transport, self.transport),
            max_model_len=self.max_model_len,
            max_batch_size=self.max_batch_size,
            token_budget=max(256, self.max_batch_size),
            kv_cache_tokens=self.kv_cache_tokens,
            target_itl=self.target_itl_ms / 1000 if self.target_itl_ms else None,
        )

    @property
    def live_replica(self) -> "Replica | None":
        return self.replicas.exclude(status=ReplicaStatus.STOPPED).order_by("-pk").first()


class Replica(models.Model):
    """One launch of a deployment: a head and its ranks, started together and ended together."""

    deployment = models.ForeignKey(
        Deployment, models.CASCADE, verbose_name=_("deployment"), related_name="replicas"
    )
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
    ended_at = models.DateTimeField(_("ended"), null=True)
    """When it failed or was stopped; its last processes may end a little later."""

    class Meta:
        ordering = ["-created"]
        verbose_name = _("launch")
        verbose_name_plural = _("launches")
        constraints = [
            models.UniqueConstraint(
                fields=["deployment"],
                condition=models.Q(status__in=["starting", "ready", "stopping"]),
                name="one_live_replica_per_deployment",
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
    tp_rank = models.PositiveSmallIntegerField()
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
