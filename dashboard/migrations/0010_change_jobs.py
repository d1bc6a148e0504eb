from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ("dashboard", "0009_configuration_access_firmware"),
    ]

    operations: list = []
