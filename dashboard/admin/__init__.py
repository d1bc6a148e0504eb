"""Django's administration, themed with unfold: one file a concern."""

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django_celery_beat import models as beat

from dashboard.access import may
from dashboard.admin import access, catalog, deployments, fleet, history
from dashboard.choices import Role

__all__ = ["access", "catalog", "deployments", "fleet", "history"]

# The schedule is part of the program; changing it by hand would only break it.
for model in (
    beat.ClockedSchedule,
    beat.CrontabSchedule,
    beat.IntervalSchedule,
    beat.PeriodicTask,
    beat.SolarSchedule,
):
    if admin.site.is_registered(model):
        admin.site.unregister(model)

# Sessions, second factors and ties to a provider are looked after on their own pages, and some of
# what these rows hold opens an account.
for label in ("account", "socialaccount", "mfa", "usersessions"):
    for row in apps.get_app_config(label).get_models():
        if admin.site.is_registered(row):
            admin.site.unregister(row)


def _is_administrator(request: HttpRequest) -> bool:
    return may(request.user, Role.ADMIN)


admin.site.has_permission = _is_administrator  # type: ignore[method-assign]  # the role, not a flag
