from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ("dashboard", "0012_firmware_images"),
    ]

    operations: list = []
