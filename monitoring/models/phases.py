"""What an engine's ranks were at, a moment at a time, for the last minutes."""

from django.db import models


class RankMoment(models.Model):
    """One report of one head about all its ranks. Kept for minutes; a post-mortem keeps longer."""

    launch = models.CharField(max_length=32)
    at = models.DateTimeField()
    status = models.CharField(max_length=20)
    ranks = models.JSONField()
    """One object a rank: rank, phase, doing, layer, step, seconds."""

    class Meta:
        indexes = [
            models.Index(fields=["launch", "at"], name="moment_by_launch"),
            models.Index(fields=["at"], name="moment_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.launch} {self.at:%H:%M:%S}"


class Usual(models.Model):
    """What a series usually reads, as of some minutes ago."""

    series = models.CharField(max_length=240, unique=True)
    """Topic and series key."""
    value = models.FloatField(null=True)
    """The median; null where there is too little to tell."""
    highest = models.FloatField(null=True)
    at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "usuals"

    def __str__(self) -> str:
        return self.series
