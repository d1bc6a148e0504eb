from django.db import migrations
from django.utils import timezone


def end(apps, schema_editor):
    """A launch is the work of a slot now; what was at it in 0.2 would fail for want of one.

    The deployment's row knows what should run, so the next look at it begins anew.
    """
    jobs = apps.get_model("dashboard", "Job").objects.filter(
        slot=None, status__in=["queued", "running"]
    )
    jobs.exclude(kind="stop").update(status="cancelled", finished_at=timezone.now())


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0005_message_stream")]

    operations = [migrations.RunPython(end, migrations.RunPython.noop)]
