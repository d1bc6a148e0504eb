"""Alert rules, and each time that one held."""

from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from monitoring.alerts.rules import Phase, State, Terms
from monitoring.alerts.wording import amount, place

GRAVEST_FIRST = models.Case(
    models.When(severity="critical", then=0), models.When(severity="warning", then=1), default=2
)


class Severity(models.TextChoices):
    NOTE = "note", _("Note")
    WARNING = "warning", _("Warning")
    CRITICAL = "critical", _("Critical")

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Rule(models.Model):
    """What should not be. A built-in one has a `key`, can be edited, and put back as it was."""

    key = models.SlugField(max_length=40, unique=True, null=True, editable=False)
    name = models.CharField(_("name"), max_length=80)
    """Of a built-in rule that nobody renamed: an English text that is translated when shown."""
    kind = models.CharField(_("watches"), max_length=20)
    """One of `monitoring.alerts.kinds`."""
    enabled = models.BooleanField(_("on"), default=True)
    severity = models.CharField(
        _("severity"), max_length=10, choices=Severity.choices, default=Severity.WARNING
    )
    above = models.BooleanField(default=True)
    threshold = models.FloatField(_("threshold"))
    clear = models.FloatField(
        _("over at"), help_text=_("The alert ends only once the value is back here.")
    )
    for_seconds = models.PositiveIntegerField(
        _("for"), default=60, help_text=_("Seconds that it must last before it fires.")
    )
    clear_seconds = models.PositiveIntegerField(
        _("calm for"), default=60, help_text=_("Seconds that it must be over before it ends.")
    )
    node = models.ForeignKey(
        "dashboard.Node", models.CASCADE, verbose_name=_("only node"), null=True, blank=True
    )
    deployment = models.ForeignKey(
        "dashboard.Deployment",
        models.CASCADE,
        verbose_name=_("only deployment"),
        null=True,
        blank=True,
    )
    metric = models.CharField(_("metric"), max_length=64, blank=True)
    scope = models.CharField(_("scope"), max_length=20, blank=True)
    label = models.CharField(_("label"), max_length=60, blank=True)
    price = models.DecimalField(_("price"), max_digits=8, decimal_places=4, null=True, blank=True)
    """Of a kilowatt-hour, for a budget where no tariff is known."""
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-severity", "name"]

    def __str__(self) -> str:
        return gettext(self.name)

    @property
    def terms(self) -> Terms:
        return Terms(
            self.threshold,
            self.clear,
            self.above,
            float(self.for_seconds),
            float(self.clear_seconds),
        )


class AlertStatus(models.TextChoices):
    PENDING = "pending", _("Pending")
    FIRING = "firing", _("Firing")
    RESOLVED = "resolved", _("Resolved")


class Alert(models.Model):
    """One time that a rule held for one series of one subject."""

    rule = models.ForeignKey(Rule, models.SET_NULL, null=True, related_name="alerts")
    rule_name = models.CharField(max_length=80)
    kind = models.CharField(max_length=20)
    topic = models.CharField(max_length=120)
    """`monitoring.scopes`; empty for what concerns the whole fleet."""
    series = models.CharField(max_length=160, blank=True)
    """Which of its series; empty where there is one."""
    node = models.ForeignKey("dashboard.Node", models.CASCADE, null=True, related_name="alerts")
    deployment = models.ForeignKey(
        "dashboard.Deployment", models.CASCADE, null=True, related_name="alerts"
    )
    severity = models.CharField(max_length=10, choices=Severity.choices)
    status = models.CharField(max_length=10, choices=AlertStatus.choices)
    above = models.BooleanField(default=True)
    threshold = models.FloatField()
    unit = models.CharField(max_length=20, blank=True)
    value = models.FloatField(null=True)
    """The newest one; null while it is absent, and `reason` says why."""
    worst = models.FloatField(null=True)
    reason = models.CharField(max_length=300, blank=True)
    began = models.DateTimeField()
    fired = models.DateTimeField(null=True)
    resolved = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=200, blank=True)
    """Why it ended, where it was not the value; an English sentence, translated when shown."""
    held = models.FloatField(default=0.0)
    calm = models.FloatField(null=True)
    unseen = models.FloatField(null=True)
    seen = models.FloatField()
    hushed = models.BooleanField(default=False)
    """A silence or a maintenance window covers it now."""
    incident = models.ForeignKey(
        "monitoring.Incident", models.SET_NULL, null=True, related_name="alerts"
    )

    class Meta:
        ordering = ["-began", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "topic", "series"],
                condition=models.Q(status__in=["pending", "firing"]),
                name="one_open_alert_per_series",
            )
        ]
        indexes = [
            models.Index(fields=["status", "severity"], name="alert_by_status"),
            models.Index(fields=["fired"], name="alert_by_time"),
        ]

    def __str__(self) -> str:
        return self.text

    @property
    def name(self) -> str:
        return gettext(self.rule_name)

    @property
    def place(self) -> str:
        """Where, in the reader's language."""
        node = self.node.name if self.node else ""
        return place(self.topic, node, self.deployment.name if self.deployment else "")

    @property
    def text(self) -> str:
        return f"{self.name} · {self.place}"

    @property
    def value_text(self) -> str:
        """Empty while the value is absent; then `why` says why."""
        return "" if self.value is None else amount(self.value, self.unit)

    @property
    def worst_text(self) -> str:
        return "" if self.worst is None else amount(self.worst, self.unit)

    @property
    def threshold_text(self) -> str:
        return amount(self.threshold, self.unit)

    @property
    def why(self) -> str:
        return gettext(self.reason) if self.reason else ""

    @property
    def ending(self) -> str:
        return gettext(self.ended_by) if self.ended_by else ""

    @property
    def state(self) -> State:
        phase: Phase = "firing" if self.status == AlertStatus.FIRING else "pending"
        return State(phase, self.held, self.calm, self.unseen, self.seen)

    @state.setter
    def state(self, state: State) -> None:
        assert state.seen is not None
        self.held, self.calm, self.unseen, self.seen = (
            state.held,
            state.calm,
            state.unseen,
            state.seen,
        )
