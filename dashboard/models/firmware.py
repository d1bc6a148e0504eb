"""Firmware: what each box has, the images there are, whom they are trusted from, tested sets."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from dashboard.choices import Component
from dashboard.models.fleet import Node
from dashboard.sentences import SentenceField


class Channel(models.TextChoices):
    """The way by which a component is read and updated."""

    REDFISH = "redfish", "Redfish"
    FWUPD = "fwupd", "fwupd"
    NPU = "npu", "npu-smi"
    READ = "read", _("read only")


class FirmwarePart(models.Model):
    """One component of a box, as it was last read."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="firmware")
    key = models.CharField(max_length=200)
    """Unique on its node: `redfish:BMC`, `fwupd:<device id>`, `read:kernel`, ..."""
    component = models.CharField(_("component"), max_length=10, choices=Component.choices)
    channel = models.CharField(_("through"), max_length=10, choices=Channel.choices)
    name = models.CharField(_("name"), max_length=120)
    model = models.CharField(_("model"), max_length=120, blank=True)
    """By which an image says what it fits, where the hardware tells it."""
    active = models.CharField(_("active"), max_length=80, blank=True)
    staged = models.CharField(_("staged"), max_length=80, blank=True)
    """Written, and running after the next reset."""
    available = models.CharField(_("available"), max_length=80, blank=True)
    updatable = models.BooleanField(_("can be updated"), default=False)
    reversible = models.BooleanField(null=True)
    """Whether an older version may be put back; None: not known."""
    details = models.JSONField(default=dict)
    reason = SentenceField(_("reason"), blank=True)
    """Why a version is not known."""
    read_at = models.DateTimeField(_("read"))

    class Meta:
        ordering = ["node", "component", "name"]
        verbose_name = _("firmware component")
        verbose_name_plural = _("firmware components")
        constraints = [
            models.UniqueConstraint(fields=["node", "key"], name="one_row_per_firmware_part"),
        ]

    def __str__(self) -> str:
        return f"{self.node}/{self.key}"


class FirmwareKey(models.Model):
    """A vendor's public key, entered by an administrator: who signs with it is trusted."""

    name = models.CharField(_("name"), max_length=80, unique=True)
    vendor = models.CharField(_("vendor"), max_length=80, blank=True)
    pem = models.TextField(_("public key or certificate (PEM)"))
    fingerprint = models.CharField(max_length=64, editable=False)
    """SHA-256 of the public key (SubjectPublicKeyInfo, DER), hex."""
    by = models.CharField(_("added by"), max_length=150)
    at = models.DateTimeField(_("added"), auto_now_add=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("vendor key")
        verbose_name_plural = _("vendor keys")

    def __str__(self) -> str:
        return self.name


class ImageSource(models.TextChoices):
    UPLOAD = "upload", _("Upload")
    LVFS = "lvfs", "LVFS"
    BUNDLE = "bundle", _("Vendor bundle")


class FirmwareImage(models.Model):
    """A file for one kind of component. Its bytes lie in the state folder under their SHA-256."""

    name = models.CharField(_("file name"), max_length=200)
    component = models.CharField(_("component"), max_length=10, choices=Component.choices)
    vendor = models.CharField(_("vendor"), max_length=80, blank=True)
    fits = models.JSONField(_("fits"), default=list)
    """Names of parts or models, `*` allowed; an image fits nothing else."""
    version = models.CharField(_("version"), max_length=80)
    size = models.PositiveBigIntegerField(_("size"))
    sha256 = models.CharField(max_length=64, unique=True)
    source = models.CharField(_("source"), max_length=10, choices=ImageSource.choices)
    signature = models.BinaryField(null=True)
    signed_by = models.ForeignKey(
        FirmwareKey, models.PROTECT, null=True, blank=True, verbose_name=_("signed by")
    )
    """Whose signature was verified; empty: the vendor gives none."""
    reversible = models.BooleanField(null=True)
    """Whether its vendor lets one go back; None: not said."""
    notes = models.TextField(_("notes"), blank=True)
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    by = models.CharField(_("added by"), max_length=150)
    at = models.DateTimeField(_("added"), auto_now_add=True)
    preapprover = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    """An administrator who let the monthly update begin without being asked again."""
    preapproved_by = models.CharField(max_length=150, blank=True)
    preapproved_at = models.DateTimeField(null=True)
    preapproved_why = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("firmware image")
        verbose_name_plural = _("firmware images")

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class TestedSet(models.Model):
    """Versions tried together: `[{"component": "bmc", "fits": "*", "version": "1.2"}]`."""

    __test__ = False

    name = models.CharField(_("name"), max_length=80, unique=True)
    versions = models.JSONField(_("versions"), default=list)
    notes = models.TextField(_("notes"), blank=True)
    by = models.CharField(_("added by"), max_length=150)
    at = models.DateTimeField(_("added"), auto_now_add=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("tested set")
        verbose_name_plural = _("tested sets")

    def __str__(self) -> str:
        return self.name
