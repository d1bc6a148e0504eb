"""Nodes: the boxes that run engines."""

import hashlib
import secrets

import msgspec
from django.db import models
from django.utils.translation import gettext_lazy as _

from dashboard.choices import NodeStatus
from dashboard.configuration.kept import Kept
from dashboard.configuration.node import NODE
from dashboard.sentences import SentenceField
from engine.protocol.agent import Inventory


def hash_token(token: str) -> str:
    """Tokens are 256-bit random, so one plain SHA-256 is enough (no dictionary to defend)."""
    return hashlib.sha256(token.encode()).hexdigest()


class Node(models.Model):
    """One box. Its agent dials in with a token of which only the hash is kept."""

    name = models.SlugField(_("name"), max_length=63, unique=True)
    address = models.CharField(
        _("address"), max_length=253, help_text=_("Where other nodes reach this one's engines.")
    )
    link_address = models.CharField(
        _("address on the cable"), max_length=253, blank=True, editable=False
    )
    """For the ranks alone; empty where they use `address` too."""
    settings = models.JSONField(_("settings"), default=dict, blank=True)
    """What was entered of `configuration.node.NODE`, checked; the rest holds its default."""
    memory_floor_mb = Kept[int]("memory_floor_mb", NODE["memory_floor_mb"].default)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    status = models.CharField(
        _("status"),
        max_length=20,
        choices=NodeStatus.choices,
        default=NodeStatus.PENDING,
        editable=False,
    )
    reason = SentenceField(_("reason"), blank=True, editable=False)
    schedulable = models.BooleanField(
        _("takes new ranks"), default=True, help_text=_("Off: nothing new is placed here.")
    )
    evacuated = models.BooleanField(_("out of service"), default=False, editable=False)
    """Nothing should run here: what does is moved first. `lifecycle.evacuation` writes it."""
    inventory = models.JSONField(_("inventory"), null=True, blank=True, editable=False)
    last_seen = models.DateTimeField(_("last seen"), null=True, blank=True, editable=False)
    connected_at = models.DateTimeField(_("connected"), null=True, blank=True, editable=False)
    connection = models.CharField(max_length=64, blank=True, editable=False)
    desired_generation = models.PositiveBigIntegerField(default=0, editable=False)
    observed_generation = models.PositiveBigIntegerField(default=0, editable=False)
    created = models.DateTimeField(_("added"), auto_now_add=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("node")
        verbose_name_plural = _("nodes")

    def __str__(self) -> str:
        return self.name

    @property
    def engine_address(self) -> str:
        """Where the panel and other nodes reach its engines."""
        return str(self.settings.get("engine_address") or self.address)

    @property
    def hardware(self) -> Inventory | None:
        return msgspec.convert(self.inventory, Inventory) if self.inventory else None

    @property
    def simulated(self) -> bool:
        """Whether its readings are made up."""
        return bool((self.inventory or {}).get("simulated"))

    def issue_token(self) -> str:
        """Set a fresh token on this (unsaved) row and return it; it cannot be read again."""
        token = f"tdn_{secrets.token_urlsafe(32)}"
        self.token_hash = hash_token(token)
        return token
