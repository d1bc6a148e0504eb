"""Slots: the places of a deployment that one launch at a time fills. `lifecycle` alone writes."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from dashboard.choices import ReplicaRole
from dashboard.configuration.engine import engine_config_of
from dashboard.models.catalog import Model
from dashboard.models.deployments import Deployment
from dashboard.models.replicas import Replica
from dashboard.sentences import SentenceField
from engine.config import EngineConfig


class Slot(models.Model):
    """A primary replica, from 0, or the fallback: how its launches fare, one after another."""

    deployment = models.ForeignKey(
        Deployment, models.CASCADE, verbose_name=_("deployment"), related_name="slots"
    )
    role = models.CharField(
        _("role"), max_length=10, choices=ReplicaRole.choices, default=ReplicaRole.PRIMARY
    )
    index = models.PositiveSmallIntegerField(_("replica"), default=0)
    wanted = models.BooleanField(_("should run"), default=True)
    """False for a fallback that is started when it is needed, until it is."""
    reason = SentenceField(_("reason"), blank=True)
    """Why it does not answer; empty while it does."""
    given_up = models.BooleanField(default=False)
    """It failed for good: nothing starts it but a person."""
    down_since = models.DateTimeField(null=True)
    hold_until = models.DateTimeField(null=True)
    """A box that comes and goes: not started by itself before."""
    failed_returns = models.PositiveSmallIntegerField(default=0)
    revision = models.ForeignKey("Revision", models.SET_NULL, null=True, related_name="+")
    """The settings that a candidate tries, and that it has when it takes over, until they are the
    deployment's. Others have their deployment's."""
    avoid = models.JSONField(default=list)
    """Of a candidate: nodes that it may not use."""
    return_asked = models.BooleanField(default=False)
    """Somebody pressed Return."""

    class Meta:
        ordering = ["-role", "index"]  # Primaries first.
        verbose_name = _("slot")
        verbose_name_plural = _("slots")
        constraints = [
            models.UniqueConstraint(fields=["deployment", "role", "index"], name="one_row_per_slot")
        ]

    def __str__(self) -> str:
        return f"{self.deployment} {self.role} {self.index}"

    @property
    def is_fallback(self) -> bool:
        return self.role == ReplicaRole.FALLBACK

    @property
    def launches(self) -> models.QuerySet[Replica]:
        """Every launch it has had, the newest first."""
        if self.deployment.pk is None:
            return Replica.objects.none()
        mine = self.deployment.replicas.filter(role=self.role, index=self.index)
        return mine.order_by("-pk")

    @property
    def replica(self) -> Replica | None:
        """The launch that fills it, or the last one that did."""
        return self.launches.first()

    @property
    def served_model(self) -> Model:
        if self.is_fallback:
            return self.deployment.fallback.served_model
        if self.revision is not None and (name := self.revision.content.get("model")):
            return Model.objects.get(name=name)
        return self.deployment.model

    @property
    def engine_config(self) -> EngineConfig:
        """Of one launch; raises ConfigError when the settings do not fit together."""
        if self.is_fallback:
            return self.deployment.fallback.engine_config
        if self.revision is not None:
            return engine_config_of(self.revision.values)
        return self.deployment.engine_config
