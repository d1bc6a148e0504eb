from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0007_log_of_nodes")]
    operations: list = []
