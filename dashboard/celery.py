"""The Celery application and what beat does."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

import logging
from logging.config import dictConfig

from celery import Celery
from celery.signals import setup_logging
from django.conf import settings

from monitoring.export import otlp

app = Celery("tandem")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["dashboard.jobs"])
app.conf.beat_schedule = {
    "reconcile": {
        "task": "tandem.reconcile",
        "schedule": 3.0,
        "options": {"expires": 3.0},
    },
    "limits": {
        "task": "tandem.limits",
        "schedule": 10.0,
        "options": {"expires": 10.0},
    },
    "alerts": {
        "task": "tandem.alerts",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "deliver": {
        "task": "tandem.deliver",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "roll-up": {
        "task": "tandem.roll_up",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "telemetry-care": {
        "task": "tandem.telemetry_care",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "prune": {
        "task": "tandem.prune",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
}
if otlp.wanted("metrics"):
    app.conf.beat_schedule["push-metrics"] = {
        "task": "tandem.push_metrics",
        "schedule": otlp.interval_seconds(),
        "options": {"expires": otlp.interval_seconds()},
    }


@setup_logging.connect
def log_like_the_web_process(**_: object) -> None:
    """Else Celery sets up formats of its own."""
    dictConfig(settings.LOGGING)
    logging.captureWarnings(settings.LOG_FORMAT == "json")


if settings.LOG_FORMAT == "json":
    log_like_the_web_process()  # Already for what is warned of before Celery asks.
