"""Celery's view of the jobs: ids in, nothing out. Every task may run twice or be lost."""

from celery.signals import worker_ready

from dashboard import audit, lifecycle, panel_settings
from dashboard.celery import app
from dashboard.firmware.upkeep import READ_TASK, look_after
from dashboard.gateway.retention import forget_requests
from dashboard.jobs import runner
from dashboard.lifecycle import updates
from dashboard.lifecycle.jobs import RECONCILE_TASK, RUN_TASK
from dashboard.updates import automatic
from dashboard.updates import runner as update_runner
from monitoring.alerts.evaluate import evaluate
from monitoring.alerts.notify.deliver import deliver
from monitoring.alerts.upkeep import forget as forget_alerts
from monitoring.export import otlp
from monitoring.storage.retention import care
from monitoring.storage.rollup import roll_up


@app.task(name=RUN_TASK)
def run_job(job_id: int, ticket: int) -> None:
    runner.run(job_id, ticket)


@app.task(name=RECONCILE_TASK)
def reconcile() -> None:
    lifecycle.reconcile()


@app.task(name=updates.RUN_TASK)
def run_update(update_id: int, ticket: int) -> None:
    update_runner.run(update_id, ticket)


@app.task(name="tandem.prune")
def prune() -> None:
    lifecycle.prune_log()
    forget_alerts()
    forget_requests()
    kept = panel_settings.current()["keep_audit_days"]
    if kept is not None:
        audit.forget(int(str(kept)))


@app.task(name="tandem.limits")
def follow_schedule() -> None:
    lifecycle.follow_schedule()


@app.task(name="tandem.alerts")
def evaluate_alerts() -> None:
    evaluate()


@app.task(name="tandem.deliver")
def deliver_messages() -> None:
    deliver()


@app.task(name="tandem.roll_up")
def roll_up_telemetry() -> None:
    roll_up()


@app.task(name="tandem.telemetry_care")
def telemetry_care() -> None:
    care()


@app.task(name=READ_TASK)
def read_firmware(node_id: int | None = None) -> None:
    """From BMCs: of one node, or of all every hour."""
    look_after(node_id)


@app.task(name=automatic.PLAN_TASK)
def plan_firmware() -> None:
    """The monthly update, where it is switched on."""
    automatic.make_due()


@app.task(name="tandem.push_metrics")
def push_metrics() -> None:
    """To an OpenTelemetry collector, where one is named."""
    if otlp.wanted("metrics"):
        from monitoring.export.otlp.readings import pusher

        pusher().push()


@worker_ready.connect
def look_around(**_: object) -> None:
    """What was queued when the broker went down is gone; the rows know what is to be done."""
    reconcile.delay()
    telemetry_care.delay()
