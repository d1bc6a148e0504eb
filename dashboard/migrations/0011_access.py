from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ("dashboard", "0010_change_jobs"),
    ]

    operations: list = []
