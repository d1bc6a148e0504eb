"""Where alerts are told, and every attempt to tell them."""

import uuid

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from monitoring.models.alerts import Severity


class ChannelKind(models.TextChoices):
    EMAIL = "email", _("E-mail")
    WEBHOOK = "webhook", _("Webhook")
    SLACK = "slack", "Slack"
    FEISHU = "feishu", _("Feishu")
    DINGTALK = "dingtalk", _("DingTalk")


class Channel(models.Model):
    """`sealed` holds its address and secret (`monitoring.vault`); `hint` is what may be shown."""

    name = models.CharField(_("name"), max_length=80, unique=True)
    kind = models.CharField(_("kind"), max_length=10, choices=ChannelKind.choices)
    enabled = models.BooleanField(_("on"), default=True)
    sealed = models.TextField()
    hint = models.CharField(max_length=200, blank=True)
    language = models.CharField(_("language"), max_length=10, default="en")
    least = models.CharField(
        _("tells from"), max_length=10, choices=Severity.choices, default=Severity.WARNING
    )
    after_minutes = models.PositiveIntegerField(
        _("only if not acknowledged after"),
        default=0,
        help_text=_("Minutes; 0 tells at once, more makes it an escalation."),
    )
    repeat_minutes = models.PositiveIntegerField(
        _("repeats every"),
        default=240,
        help_text=_("Minutes while it goes on and nobody acknowledged it; 0 never."),
    )
    resolved = models.BooleanField(_("tells when it is over"), default=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Occasion(models.TextChoices):
    OPENED = "opened", _("Opened")
    WORSE = "worse", _("Became worse")
    STILL = "still", _("Goes on")
    RESOLVED = "resolved", _("Over")
    TEST = "test", _("Test")
    NEWS = "news", _("News")


class DeliveryStatus(models.TextChoices):
    PENDING = "pending", _("Waiting")
    SENT = "sent", _("Sent")
    FAILED = "failed", _("Failed")


class Delivery(models.Model):
    """One message to one channel. It is tried again until it is taken or given up; its `key` stays
    the same, so that a receiver knows one that comes twice."""

    channel = models.ForeignKey(Channel, models.CASCADE, related_name="deliveries")
    incident = models.ForeignKey(
        "monitoring.Incident", models.CASCADE, null=True, related_name="deliveries"
    )
    occasion = models.CharField(max_length=10, choices=Occasion.choices)
    number = models.PositiveIntegerField(default=0)
    """Which of the incident's messages of that occasion."""
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    message = models.JSONField()
    """`monitoring.alerts.notify.message.Message`, in the channel's language."""
    status = models.CharField(
        max_length=10, choices=DeliveryStatus.choices, default=DeliveryStatus.PENDING
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    due = models.DateTimeField()
    answer = models.CharField(max_length=300, blank=True)
    """What the receiver said, or why it could not be asked: an English template, translated when it
    is shown."""
    parts = models.JSONField(default=dict)
    """Of the answer."""
    created = models.DateTimeField(default=timezone.now)
    sent = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "incident", "occasion", "number"], name="told_once"
            )
        ]
        indexes = [models.Index(fields=["status", "due"], name="delivery_by_due")]

    def __str__(self) -> str:
        return f"{self.channel} {self.occasion}"

    @property
    def title(self) -> str:
        """As it was sent, in the channel's language."""
        return str(self.message["title"])

    @property
    def answer_text(self) -> str:
        return gettext(self.answer) % self.parts if self.answer else ""
