from typing import Any

from django.apps import AppConfig
from django.apps import apps as registry
from django.db.models.signals import post_migrate


class MonitoringConfig(AppConfig):
    name = "monitoring"

    def ready(self) -> None:
        post_migrate.connect(make_parts, sender=self)
        post_migrate.connect(seed_rules, sender=self)


def make_parts(plan: Any = (), **_given: Any) -> None:
    """After each `migrate`: the tables of this time are there before the first reading is."""
    from django.db import connection
    from django.utils import timezone

    from monitoring.storage.partitions import ensure

    if "monitoring_hour" in connection.introspection.table_names():
        ensure(timezone.now())


def seed_rules(apps: Any = registry, **_given: Any) -> None:
    """After each `migrate`: the built-in rules; not where migrations stop before their table."""
    from monitoring.alerts.builtin import seed

    if "rule" in apps.all_models["monitoring"]:
        seed()
