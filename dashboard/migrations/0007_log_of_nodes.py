import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0006_jobs_of_before_slots")]

    operations = [
        migrations.AddField(
            model_name="logline",
            name="node",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="log",
                to="dashboard.node",
            ),
        ),
        migrations.AddField(
            model_name="logline",
            name="level",
            field=models.CharField(
                blank=True,
                choices=[
                    ("debug", "Debug"),
                    ("info", "Info"),
                    ("warning", "Warning"),
                    ("error", "Error"),
                    ("critical", "Critical"),
                ],
                default="",
                max_length=10,
                verbose_name="level",
            ),
        ),
        migrations.AddField(
            model_name="logline",
            name="request",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.AddIndex(
            model_name="logline",
            index=django.contrib.postgres.indexes.BrinIndex(
                fields=["at"], name="log_by_time", pages_per_range=16
            ),
        ),
    ]
