from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("dashboard", "0012_firmware_images"),
    ]

    operations: list = [
        migrations.AddField(
            model_name="firmwareimage",
            name="preapprover",
            field=models.ForeignKey(
                null=True,
                on_delete=models.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="firmwareimage",
            name="preapproved_by",
            field=models.CharField(blank=True, max_length=150),
        ),
        migrations.AddField(
            model_name="firmwareimage",
            name="preapproved_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="firmwareimage",
            name="preapproved_why",
            field=models.CharField(blank=True, max_length=300),
        ),
    ]
