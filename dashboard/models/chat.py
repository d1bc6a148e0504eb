"""Saved conversations."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from dashboard.choices import MessageRole, MessageStatus


class Conversation(models.Model):
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        verbose_name=_("user"),
        related_name="conversations",
    )
    title = models.CharField(_("title"), max_length=200, blank=True)
    route = models.CharField(_("deployment"), max_length=80)
    """Name of the deployment it talks to; it may be gone by now."""
    created = models.DateTimeField(_("created"), auto_now_add=True)
    updated = models.DateTimeField(_("last message"), auto_now=True, db_index=True)

    class Meta:
        ordering = ["-updated"]
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")

    def __str__(self) -> str:
        """Its title is its owner's; this is what administrators see."""
        return f"{self.route} #{self.pk}"


class Message(models.Model):
    """One turn. `metrics` is null until measured: seconds, tokens, tokens/s, finish reason."""

    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="messages")
    role = models.CharField(max_length=20, choices=MessageRole.choices)
    content = models.TextField(blank=True)
    reasoning = models.TextField(blank=True)
    """What the model thought before it answered; never sent back to it."""
    status = models.CharField(
        max_length=20, choices=MessageStatus.choices, default=MessageStatus.DONE
    )
    error = models.TextField(blank=True)
    metrics = models.JSONField(null=True)
    stream = models.CharField(max_length=64, blank=True)
    """Under which id a head has it, while it is being written."""
    launch = models.CharField(max_length=32, blank=True)
    """Whose head that is, or was at first."""
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.role} #{self.pk}"
