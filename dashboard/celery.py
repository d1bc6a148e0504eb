"""The Celery application and what beat does."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

import logging
from logging.config import dictConfig

from celery import Celery
from celery.signals import setup_logging
from django.conf import settings

from monitoring.export import otlp


def _every(seconds: float, task: str) -> dict[str, object]:
    """A task that was not taken until the next is due is not made up for."""
    return {"task": task, "schedule": seconds, "options": {"expires": seconds}}


app = Celery("tandem")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["dashboard.jobs"])
app.conf.beat_schedule = {
    "reconcile": _every(3.0, "tandem.reconcile"),
    "limits": _every(10.0, "tandem.limits"),
    "alerts": _every(5.0, "tandem.alerts"),
    "deliver": _every(5.0, "tandem.deliver"),
    "roll-up": _every(60.0, "tandem.roll_up"),
    "telemetry-care": _every(3600.0, "tandem.telemetry_care"),
    "firmware": _every(3600.0, "tandem.read_firmware"),
    "plan-firmware": _every(3600.0, "tandem.plan_firmware"),
    "prune": _every(600.0, "tandem.prune"),
}
if otlp.wanted("metrics"):
    app.conf.beat_schedule["push-metrics"] = _every(otlp.interval_seconds(), "tandem.push_metrics")


@setup_logging.connect
def log_like_the_web_process(**_: object) -> None:
    """Else Celery sets up formats of its own."""
    dictConfig(settings.LOGGING)
    logging.captureWarnings(settings.LOG_FORMAT == "json")


if settings.LOG_FORMAT == "json":
    log_like_the_web_process()  # Already for what is warned of before Celery asks.
