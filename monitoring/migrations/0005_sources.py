import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0004_energy"),
    ]

    operations = [
        migrations.CreateModel(
            name="NodeSource",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("redfish", "BMC (Redfish)"),
                            ("pdu", "Metered PDU (SNMP)"),
                            ("meter", "Sound level meter"),
                            ("microphone", "Microphone"),
                            ("fan-law", "Estimate from fan speeds"),
                            ("declared-noise", "Declared noise"),
                            ("declared-power", "Declared power"),
                        ],
                        max_length=20,
                        verbose_name="kind",
                    ),
                ),
                ("name", models.CharField(max_length=40, verbose_name="name")),
                ("settings", models.JSONField(default=dict)),
                ("sealed", models.TextField(blank=True)),
                ("changed", models.DateTimeField(auto_now=True)),
                (
                    "node",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sources",
                        to="dashboard.node",
                    ),
                ),
            ],
            options={"ordering": ["pk"]},
        ),
        migrations.AddConstraint(
            model_name="nodesource",
            constraint=models.UniqueConstraint(
                fields=("node", "name"), name="one_source_of_a_name"
            ),
        ),
    ]
