from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0006_jobs_of_before_slots")]

    operations = []
