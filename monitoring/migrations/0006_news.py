from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("monitoring", "0005_sources"),
    ]

    operations = [
        migrations.AlterField(
            model_name="delivery",
            name="occasion",
            field=models.CharField(
                choices=[
                    ("opened", "Opened"),
                    ("worse", "Became worse"),
                    ("still", "Goes on"),
                    ("resolved", "Over"),
                    ("test", "Test"),
                    ("news", "News"),
                ],
                max_length=10,
            ),
        ),
    ]
