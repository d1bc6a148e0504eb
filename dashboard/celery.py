"""The Celery application."""

from celery import Celery

app = Celery("tandem")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["dashboard.jobs"])
