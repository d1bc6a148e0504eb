"""Stored readings: one narrow row a second for everything a node says about one subject.

A reading holds numbers only; what each number is (metric, unit, source, kind) and why one is absent
stands once in its `Layout`. So a row costs 24 bytes of header, 16 of key and 8 a number, kinds and
reasons stay exact for every second, a new metric needs no migration, and the numbers of one subject
lie side by side as they are drawn. Roll-ups have the same shape.

The tables are partitioned by time (`monitoring.storage.partitions`), which is why the time is part
of each key. They have no foreign key in the database: removing a node removes its layouts at once,
and the rows that nothing describes any more are never read and go with their partition.
"""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models


class Layout(models.Model):
    """What the numbers of a reading mean; a new one is made whenever any of it changes."""

    node = models.ForeignKey("dashboard.Node", models.CASCADE, related_name="layouts", null=True)
    """None for what sums up the fleet."""
    subject = models.CharField(max_length=100)
    """`node`, `gpu:<index>`, `launch:<id>`, `launch:<id>:rank<k>` or `group:<of what>`."""
    digest = models.CharField(max_length=32)
    fields = models.JSONField()
    """One list a number: metric, unit, source, kind, scope, reason, label."""
    shapes = models.TextField()
    """One letter a number, for the roll-up: see `monitoring.storage.shapes`."""
    created = models.DateTimeField(auto_now_add=True)
    seen = models.DateTimeField(null=True)
    """Within ten minutes, the newest minute that was rolled up with it."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node", "subject", "digest"],
                name="one_row_per_layout",
                nulls_distinct=False,
            ),
        ]
        indexes = [models.Index(fields=["subject"], name="layout_by_subject")]

    def __str__(self) -> str:
        return f"{self.subject} {self.digest[:8]}"

    @property
    def by_metric(self) -> dict[str, list[str]]:
        """The first field of each metric."""
        return {described[0]: described for described in reversed(self.fields)}


class Reading(models.Model):
    """The numbers read at one instant on the panel's clock; null where the layout says why."""

    pk = models.CompositePrimaryKey("layout_id", "at")
    layout = models.ForeignKey(
        Layout, models.DO_NOTHING, related_name="readings", db_index=False, db_constraint=False
    )
    at = models.DateTimeField()
    numbers = ArrayField(models.FloatField(null=True))

    class Meta:
        indexes = [
            BrinIndex(fields=["at"], name="reading_by_time", pages_per_range=32, autosummarize=True)
        ]

    def __str__(self) -> str:
        return f"{self.layout_id} {self.at:%H:%M:%S}"


class RolledUp(models.Model):
    """What the readings of one layout came to in one bucket, in the layout's order."""

    pk = models.CompositePrimaryKey("layout_id", "at")
    layout = models.ForeignKey(
        Layout, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    at = models.DateTimeField()
    """The beginning of the bucket."""
    rows = models.IntegerField()
    """How many readings of this layout there were, with a value or without."""
    covered = models.FloatField()
    """Seconds of the bucket for which there are readings."""
    n = ArrayField(models.IntegerField())
    """Readings that had a value."""
    low = ArrayField(models.FloatField(null=True))
    """`low`, `mean` and `high` of a histogram's bars are null: only their growth means anything."""
    mean = ArrayField(models.FloatField(null=True))
    high = ArrayField(models.FloatField(null=True))
    last = ArrayField(models.FloatField(null=True))
    gain = ArrayField(models.FloatField(null=True))
    """What a counter grew by; null for gauges and where growth cannot be told."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.layout_id} {self.at:%Y-%m-%d %H:%M}"


class Minute(RolledUp):
    class Meta:
        indexes = [
            BrinIndex(fields=["at"], name="minute_by_time", pages_per_range=32, autosummarize=True)
        ]


class Hour(RolledUp):
    class Meta:
        indexes = [
            BrinIndex(fields=["at"], name="hour_by_time", pages_per_range=32, autosummarize=True)
        ]


class Progress(models.Model):
    """Up to where a level has been rolled up."""

    level = models.CharField(max_length=10, primary_key=True)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.level} {self.until:%Y-%m-%d %H:%M}"


class Due(models.Model):
    """A bucket that got a reading late and is rolled up again. Added to, never updated: whoever
    stores readings waits for no roll-up."""

    level = models.CharField(max_length=10)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.level} {self.at:%Y-%m-%d %H:%M}"
