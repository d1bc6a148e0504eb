"""Quiet hours and power caps: the rules, what each node is held to, and when that was."""

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from monitoring.accounts.quiet import Rule
from monitoring.accounts.weekly import Weekly
from monitoring.models.energy import every_day

MEGA = 1e6


class QuietRule(models.Model):
    """Holds nodes and engines back, in some hours of the week or always."""

    name = models.CharField(_("name"), max_length=60, unique=True)
    enabled = models.BooleanField(_("in force"), default=True)
    always = models.BooleanField(_("always"), default=False)
    days = ArrayField(models.PositiveSmallIntegerField(), verbose_name=_("days"), default=every_day)
    begins = models.TimeField(_("begins"), null=True, blank=True)
    ends = models.TimeField(_("ends"), null=True, blank=True)
    zone = models.CharField(_("time zone"), max_length=64, default="UTC")
    node = models.ForeignKey(
        "dashboard.Node",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="quiet_rules",
        verbose_name=_("node"),
    )
    """Empty: every node."""
    deployment = models.ForeignKey(
        "dashboard.Deployment",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="quiet_rules",
        verbose_name=_("deployment"),
    )
    """Whose batch is capped; empty: every deployment's."""
    power_watts = models.PositiveIntegerField(
        _("power limit"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    clock_mhz = models.PositiveIntegerField(
        _("highest clock"), null=True, blank=True, validators=[MinValueValidator(100)]
    )
    batch_cap = models.PositiveIntegerField(
        _("answers at once"), null=True, blank=True, validators=[MinValueValidator(1)]
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def hours(self) -> Weekly | None:
        if self.always or self.begins is None or self.ends is None:
            return None
        return Weekly(frozenset(self.days), self.begins, self.ends)

    @property
    def rule(self) -> Rule:
        return Rule(
            name=self.name,
            zone=self.zone,
            hours=self.hours,
            node=self.node_id,
            deployment=self.deployment_id,
            power_watts=self.power_watts,
            clock_hertz=None if self.clock_mhz is None else self.clock_mhz * MEGA,
            batch_cap=self.batch_cap,
        )


class NodeLimits(models.Model):
    """What a node was told last, and what its agent says became of it."""

    node = models.OneToOneField(
        "dashboard.Node", models.CASCADE, primary_key=True, related_name="limits"
    )
    wanted = models.JSONField(default=dict)
    """As `Limits` travel to the agent."""
    states = models.JSONField(default=list)
    """As `LimitState` travel from it."""
    reported = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return str(self.node_id)


class LimitSpan(models.Model):
    """From when to when a node was held to something."""

    node = models.ForeignKey("dashboard.Node", models.CASCADE, related_name="limit_spans")
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)
    """None: it still holds."""
    why = models.TextField()
    """The names of the rules."""

    class Meta:
        ordering = ["-since", "-pk"]
        indexes = [models.Index(fields=["node", "since"], name="limit_span_by_node")]
        constraints = [
            models.UniqueConstraint(
                fields=["node"], condition=models.Q(until=None), name="one_open_span_per_node"
            )
        ]

    def __str__(self) -> str:
        return f"{self.why} {self.since:%Y-%m-%d %H:%M}"
