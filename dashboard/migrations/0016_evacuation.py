from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ("dashboard", "0015_declared"),
    ]

    operations: list = []
