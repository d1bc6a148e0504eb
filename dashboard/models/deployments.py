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
    ReplicaRole,
    ReplicaStatus,
    ReturnMode,
)
from dashboard.configuration.engine import (
    DTYPE_CHOICES,
    ENGINE,
    KV_DTYPE_CHOICES,
    engine_config_of,
    plan_of,
)
from dashboard.configuration.kept import Kept
from dashboard.models.catalog import Model
from dashboard.sentences import SentenceField
from engine.config import Dtype, EngineConfig, KvDtype, ParallelPlan

if TYPE_CHECKING:
    from dashboard.models.replicas import Replica

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
    settings = models.JSONField(_("settings"), default=dict, blank=True)
    """What was entered of `configuration.engine.ENGINE`, checked; the rest holds its default."""
    tp = Kept[int]("tp", ENGINE["tp"].default)
    pp = Kept[int]("pp", ENGINE["pp"].default)
    ep = Kept[int]("ep", ENGINE["ep"].default)
    dp = Kept[int]("dp", ENGINE["dp"].default)
    dtype = Kept[str]("dtype", ENGINE["dtype"].default)
    int4_group = Kept[int]("int4_group", ENGINE["int4_group"].default)
    kv_dtype = Kept[str]("kv_dtype", ENGINE["kv_dtype"].default)
    transport = Kept[str]("transport", ENGINE["transport"].default)
    max_model_len = Kept[int | None]("max_model_len", ENGINE["max_model_len"].default)
    max_batch_size = Kept[int]("max_batch_size", ENGINE["max_batch_size"].default)
    kv_cache_tokens = Kept[int]("kv_cache_tokens", ENGINE["kv_cache_tokens"].default)
    target_itl_ms = Kept[int | None]("target_itl_ms", ENGINE["target_itl_ms"].default)
    rank_weights = Kept[str | None]("rank_weights", ENGINE["rank_weights"].default)
    revision = models.ForeignKey(
        "Revision", models.SET_NULL, null=True, editable=False, related_name="+"
    )
    """The one in use; None before settings were first changed."""
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
        return plan_of(self.settings)

    @property
    def engine_config(self) -> EngineConfig:
        """Raises ConfigError when the settings do not fit together."""
        return engine_config_of(self.settings)

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
        """What answers, comes up or failed last; not what was only tried, or is on its way out."""
        tried = models.Q(role=ReplicaRole.CANDIDATE, status=ReplicaStatus.FAILED)
        leaving = models.Q(role=ReplicaRole.RETIRING)
        rows = self.replicas.exclude(status=ReplicaStatus.STOPPED).exclude(tried | leaving)
        return rows.order_by("-pk").first()


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
