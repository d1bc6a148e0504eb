import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("dashboard", "0011_access"),
    ]

    operations: list = [
        migrations.CreateModel(
            name="FirmwareFetch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("by_agent", models.BooleanField(default=False)),
                ("expires_at", models.DateTimeField()),
                ("sent", models.PositiveBigIntegerField(default=0)),
                ("done_at", models.DateTimeField(null=True)),
                ("image", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="fetches", to="dashboard.firmwareimage")),
                ("update", models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="fetches", to="dashboard.nodeupdate")),
            ],
            options={"ordering": ["pk"]},
        ),
    ]
