"""One-use addresses under which a BMC or an agent fetches an image."""

from django.db import models
from django.utils import timezone

from dashboard.models.firmware import FirmwareImage
from dashboard.models.rollouts import NodeUpdate


class FirmwareFetch(models.Model):
    """Good for one whole fetch; what broke off may be fetched again until it is whole."""

    token_hash = models.CharField(max_length=64, unique=True)
    image = models.ForeignKey(FirmwareImage, models.CASCADE, related_name="fetches")
    update = models.ForeignKey(NodeUpdate, models.CASCADE, null=True, related_name="fetches")
    by_agent = models.BooleanField(default=False)
    """The node's token is asked for too."""
    expires_at = models.DateTimeField()
    sent = models.PositiveBigIntegerField(default=0)
    """Bytes handed over from the beginning, without a hole."""
    done_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.image}: {self.sent}/{self.image.size}"

    @property
    def open(self) -> bool:
        return self.done_at is None and timezone.now() < self.expires_at
