from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0004_energy")]

    operations = []
