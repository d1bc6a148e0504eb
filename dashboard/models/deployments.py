"""Deployments and their fallbacks. `lifecycle` is the only writer of any status here."""

from typing import TYPE_CHECKING, cast

import msgspec
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from dashboard.choices import (
    ANSWERING_STATUSES,
    DeploymentStatus,
    FallbackMode,
    ReplicaStatus,
    ReturnMode,
)
from dashboard.models.catalog import Model
from dashboard.sentences import SentenceField
from engine.config import INT4_GROUPS, Dtype, EngineConfig, KvDtype, ParallelPlan, Transport

if TYPE_CHECKING:
    from dashboard.models.replicas import Replica

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

TRANSPORT_CHOICES = [
    ("auto", _("automatic")),
    ("shm", _("shared memory (one host)")),
    ("tcp", "TCP"),
    ("gloo", _("gloo (torch.distributed)")),
]

MANY = [MinValueValidator(1), MaxValueValidator(64)]


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
    ep = models.PositiveSmallIntegerField(
        _("expert parallel"),
        default=1,
        validators=MANY,
        help_text=_("Groups of ranks that hold different whole experts of every layer."),
    )
    dp = models.PositiveSmallIntegerField(
        _("replicas"),
        default=1,
        validators=MANY,
        help_text=_("Copies of all that; a conversation stays with the one that remembers it."),
    )
    rank_weights = models.CharField(
        _("rank weights"),
        max_length=200,
        blank=True,
        help_text=_(
            "How much each rank carries, such as 3:2 where the first box is larger; empty for all "
            "alike."
        ),
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
        default="auto",
        help_text=_(
            "How ranks exchange what they computed: through shared memory on one host, over TCP "
            "between hosts."
        ),
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
        """Raises PlanError when its numbers do not fit together."""
        weights = self.rank_weights.replace(" ", "")
        degrees = f"tp={self.tp},pp={self.pp},ep={self.ep},dp={self.dp}"
        return ParallelPlan.parse(degrees + (f",weights={weights}" if weights else ""))

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
    def width(self) -> int:
        """Ranks that share a layer."""
        return self.tp * self.ep

    @property
    def answers(self) -> bool:
        """Whether it is worth asking: a recovering one keeps what it is asked until it is back."""
        return self.status in ANSWERING_STATUSES

    @property
    def fallback_or_none(self) -> "Fallback | None":
        return Fallback.objects.select_related("model").filter(deployment=self).first()

    @property
    def live_replica(self) -> "Replica | None":
        return self.replicas.exclude(status=ReplicaStatus.STOPPED).order_by("-pk").first()


class Fallback(models.Model):
    """What answers under a deployment's name, from one box, while the deployment itself cannot."""

    deployment = models.OneToOneField(Deployment, models.CASCADE, related_name="fallback")
    mode = models.CharField(
        _("fallback"), max_length=10, choices=FallbackMode.choices, default=FallbackMode.COLD
    )
    returns = models.CharField(
        _("return"),
        max_length=10,
        choices=ReturnMode.choices,
        default=ReturnMode.AUTO,
        help_text=_("How the deployment takes over again once it can."),
    )
    model = models.ForeignKey(
        Model,
        models.PROTECT,
        related_name="fallbacks",
        verbose_name=_("model"),
        null=True,
        blank=True,
        help_text=_("Empty for the same model."),
    )
    tp = models.PositiveSmallIntegerField(_("tensor parallel"), default=1, validators=MANY)
    dtype = models.CharField(_("number type"), max_length=8, choices=DTYPE_CHOICES, default="fp32")
    kv_dtype = models.CharField(
        _("KV cache number type"), max_length=8, choices=KV_DTYPE_CHOICES, default="fp32"
    )
    kv_cache_tokens = models.PositiveIntegerField(
        _("KV cache"), default=16384, validators=[MinValueValidator(64)]
    )

    class Meta:
        verbose_name = _("fallback")
        verbose_name_plural = _("fallbacks")

    def __str__(self) -> str:
        return f"{self.deployment} (fallback)"

    @property
    def served_model(self) -> Model:
        return self.model or self.deployment.model

    @property
    def _longest(self) -> int:
        limit = self.served_model.shape.context_length
        return min(self.deployment.max_model_len or limit, limit)

    @property
    def engine_config(self) -> EngineConfig:
        """The deployment's settings on one box; raises ConfigError when they do not fit."""
        return msgspec.structs.replace(
            self.deployment.engine_config,
            plan=ParallelPlan(tp=self.tp),
            max_model_len=self._longest,
            dtype=cast(Dtype, self.dtype),
            kv_dtype=cast(KvDtype, self.kv_dtype),
            kv_cache_tokens=self.kv_cache_tokens,
            transport="auto",
        )
