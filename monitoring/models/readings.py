"""Stored readings: one narrow row a second for everything a node says about one subject.

A reading holds numbers only; what each number is (metric, unit, source, kind) and why one is absent
stands once in its `Layout`. So a row costs 24 bytes of header, 16 of key and 8 a number, kinds and
reasons stay exact for every second, a new metric needs no migration, and the numbers of one subject
lie side by side as they are drawn. The time is part of the key, which is what day partitions need;
BRIN finds a time range whatever the layout.
"""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models


class Layout(models.Model):
    """What the numbers of a reading mean; a new one is made whenever any of it changes."""

    node = models.ForeignKey("dashboard.Node", models.CASCADE, related_name="layouts")
    subject = models.CharField(max_length=100)
    """`node`, `launch:<id>` or `launch:<id>:rank<k>`."""
    digest = models.CharField(max_length=32)
    fields = models.JSONField()
    """One list a number: metric, unit, source, kind, scope, reason, label."""
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node", "subject", "digest"], name="one_row_per_layout"
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
    """The numbers read at one instant on the node's clock; null where the layout says why."""

    pk = models.CompositePrimaryKey("layout_id", "at")
    layout = models.ForeignKey(Layout, models.CASCADE, related_name="readings", db_index=False)
    at = models.DateTimeField()
    numbers = ArrayField(models.FloatField(null=True))

    class Meta:
        indexes = [BrinIndex(fields=["at"], name="reading_by_time", pages_per_range=32)]

    def __str__(self) -> str:
        return f"{self.layout_id} {self.at:%H:%M:%S}"
