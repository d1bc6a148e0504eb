from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ("dashboard", "0011_access"),
    ]

    operations: list = []
