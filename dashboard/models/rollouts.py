"""Firmware updates: a roll-out over nodes, one after another, and each node's own update.

`lifecycle.updates` is the only writer of a state here.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from dashboard.choices import UNDERWAY_UPDATE_STATES, UpdateState
from dashboard.models.firmware import FirmwareImage, FirmwarePart
from dashboard.models.fleet import Node
from dashboard.sentences import SentenceField


class Rollout(models.Model):
    """One image for one or several boxes, in an order; it stops at the first that fails."""

    image = models.ForeignKey(FirmwareImage, models.PROTECT, related_name="rollouts")
    token = models.CharField(max_length=64, unique=True)
    """Of the form it came from: the same form sent twice is one roll-out."""
    reason = models.CharField(_("reason"), max_length=300)
    allow_downgrade = models.BooleanField(_("allow an older version"), default=False)
    on_reset = models.BooleanField(
        _("activate later"),
        default=False,
        help_text=_("Stage it now; it runs after a reset, which is asked for separately."),
    )
    not_before = models.DateTimeField(_("not before"), null=True, blank=True)
    automatic = models.BooleanField(default=False)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    by = models.CharField(_("asked for by"), max_length=150)
    at = models.DateTimeField(_("made"), auto_now_add=True)
    approver = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    approved_by = models.CharField(_("approved by"), max_length=150, blank=True)
    approved_at = models.DateTimeField(_("approved"), null=True)
    approval_reason = models.CharField(_("reason of the approval"), max_length=300, blank=True)
    finished_at = models.DateTimeField(_("finished"), null=True)
    stopped = SentenceField(_("stopped because"), blank=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("firmware roll-out")
        verbose_name_plural = _("firmware roll-outs")

    def __str__(self) -> str:
        return f"{self.image}"


class NodeUpdate(models.Model):
    """The update of one part of one node. `ticket`, `due_at` and the like are as in Job."""

    rollout = models.ForeignKey(Rollout, models.CASCADE, related_name="updates")
    node = models.ForeignKey(Node, models.PROTECT, related_name="updates")
    part = models.ForeignKey(FirmwarePart, models.SET_NULL, null=True, related_name="+")
    part_key = models.CharField(max_length=200)
    order = models.PositiveSmallIntegerField()
    from_version = models.CharField(_("from"), max_length=80, blank=True)
    to_version = models.CharField(_("to"), max_length=80)
    state = models.CharField(
        _("state"), max_length=20, choices=UpdateState.choices, default=UpdateState.DRAFT
    )
    reason = SentenceField(_("reason"), blank=True)
    percent = models.FloatField(null=True)
    """Of what the state is at; None: not told."""
    memory = models.JSONField(default=dict)
    """What finished steps left for later ones (a task's URI, a boot time); never a secret."""
    deadline_at = models.DateTimeField(null=True)
    """Of the state it is in."""
    ticket = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(null=True)
    touched_at = models.DateTimeField(null=True)
    resumes = models.PositiveSmallIntegerField(default=0)
    started_at = models.DateTimeField(_("started"), null=True)
    finished_at = models.DateTimeField(_("finished"), null=True)
    lock = models.PositiveSmallIntegerField(default=1, editable=False)
    """The same in all rows: what the constraint below holds unique."""

    class Meta:
        ordering = ["rollout", "order"]
        verbose_name = _("firmware update")
        verbose_name_plural = _("firmware updates")
        constraints = [
            models.UniqueConstraint(
                fields=["lock"],
                condition=Q(state__in=sorted(UNDERWAY_UPDATE_STATES)),
                name="one_node_out_for_firmware",
            ),
            models.UniqueConstraint(fields=["rollout", "node"], name="one_update_per_node"),
        ]

    def __str__(self) -> str:
        return f"{self.node}: {self.rollout}"


class UpdateNote(models.Model):
    """One line of an update's history."""

    update = models.ForeignKey(NodeUpdate, models.CASCADE, related_name="notes")
    at = models.DateTimeField(_("time"), auto_now_add=True)
    state = models.CharField(_("state"), max_length=20, choices=UpdateState.choices)
    text = SentenceField(_("what happened"))
    by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return str(self.text)
