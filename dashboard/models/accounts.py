"""Accounts and teams: who may do what, and with which deployments and nodes."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from dashboard.choices import Role
from dashboard.models.deployments import Deployment
from dashboard.models.fleet import Node


class Account(models.Model):
    """The role of a user; without one it follows from the user's flags (`access.role_of`)."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="account", verbose_name=_("user")
    )
    role = models.CharField(_("role"), max_length=10, choices=Role.choices, default=Role.MEMBER)

    class Meta:
        verbose_name = _("account")
        verbose_name_plural = _("accounts")

    def __str__(self) -> str:
        return f"{self.user} ({self.role})"


class Team(models.Model):
    """What belongs to teams is seen by their members alone, and by administrators; what belongs to
    none is everybody's."""

    name = models.SlugField(_("name"), max_length=63, unique=True)
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL, related_name="teams", blank=True, verbose_name=_("members")
    )
    deployments = models.ManyToManyField(
        Deployment, related_name="teams", blank=True, verbose_name=_("deployments")
    )
    nodes = models.ManyToManyField(Node, related_name="teams", blank=True, verbose_name=_("nodes"))

    class Meta:
        ordering = ["name"]
        verbose_name = _("team")
        verbose_name_plural = _("teams")

    def __str__(self) -> str:
        return self.name
