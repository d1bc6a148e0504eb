from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0004_slots")]

    operations = [
        migrations.AddField(
            model_name="message",
            name="stream",
            field=models.CharField(blank=True, default="", max_length=64),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="message",
            name="launch",
            field=models.CharField(blank=True, default="", max_length=32),
            preserve_default=False,
        ),
    ]
