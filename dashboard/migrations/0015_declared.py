from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ("dashboard", "0014_secrets"),
    ]

    operations: list = []
