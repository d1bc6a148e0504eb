from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class MonitoringConfig(AppConfig):
    name = "monitoring"

    def ready(self) -> None:
        post_migrate.connect(make_parts, sender=self)


def make_parts(plan: Any = (), **_given: Any) -> None:
    """After each `migrate`: the tables of this time are there before the first reading is."""
    from django.db import connection
    from django.utils import timezone

    from monitoring.partitions import ensure

    if "monitoring_hour" in connection.introspection.table_names():
        ensure(timezone.now())
