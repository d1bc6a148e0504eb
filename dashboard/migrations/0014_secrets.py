from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ("dashboard", "0013_firmware_updates"),
    ]

    operations: list = []
