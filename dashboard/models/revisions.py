"""Revisions: every set of settings that a deployment, a node or the panel had or was to have."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from dashboard.choices import RevisionOrigin, RevisionState
from dashboard.models.deployments import Deployment
from dashboard.models.fleet import Node
from dashboard.sentences import SentenceField


class Revision(models.Model):
    """Who changed what and why. Of a deployment, of a node, or with neither: of the panel.

    `values` are the declared settings in full. `content` holds what else belongs to a deployment's
    configuration: `{"model": NAME, "fallback": {...} | null}`.
    """

    deployment = models.ForeignKey(
        Deployment, models.CASCADE, null=True, blank=True, related_name="revisions"
    )
    node = models.ForeignKey(Node, models.CASCADE, null=True, blank=True, related_name="revisions")
    number = models.PositiveIntegerField(_("revision"))
    """From 1, within what it is of."""
    values = models.JSONField(_("settings"), default=dict)
    content = models.JSONField(default=dict)
    by = models.CharField(_("changed by"), max_length=150, blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    at = models.DateTimeField(_("time"), auto_now_add=True)
    why = models.CharField(_("reason for the change"), max_length=300, blank=True)
    origin = models.CharField(
        _("entered by"), max_length=10, choices=RevisionOrigin.choices, default=RevisionOrigin.FORM
    )
    state = models.CharField(
        _("state"), max_length=10, choices=RevisionState.choices, default=RevisionState.PROPOSED
    )
    outcome = SentenceField(_("outcome"), blank=True)
    """Why it was not taken."""
    replaces = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="+")
    """What was in use when it was made."""
    applied_at = models.DateTimeField(_("applied"), null=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("revision")
        verbose_name_plural = _("revisions")
        constraints = [
            models.UniqueConstraint(
                fields=["deployment", "number"],
                condition=Q(deployment__isnull=False),
                name="one_deployment_revision_of_a_number",
            ),
            models.UniqueConstraint(
                fields=["node", "number"],
                condition=Q(node__isnull=False),
                name="one_node_revision_of_a_number",
            ),
            models.UniqueConstraint(
                fields=["deployment"], condition=Q(state="applying"), name="one_change_at_a_time"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.deployment or self.node or 'Tandem'} r{self.number}"
