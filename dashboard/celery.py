"""The Celery application and what beat does."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

from celery import Celery

app = Celery("tandem")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["dashboard.jobs"])
app.conf.beat_schedule = {
    "reconcile": {
        "task": "tandem.reconcile",
        "schedule": 3.0,
        "options": {"expires": 3.0},
    },
    "prune": {
        "task": "tandem.prune",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
}
