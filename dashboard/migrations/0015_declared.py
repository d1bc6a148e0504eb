import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("dashboard", "0014_secrets"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SettingsTemplate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=63, unique=True, verbose_name='name')),
                ('note', models.CharField(blank=True, max_length=200, verbose_name='what it is for')),
                ('values', models.JSONField(default=dict, verbose_name='settings')),
                ('by', models.CharField(max_length=150, verbose_name='made by')),
                ('changed', models.DateTimeField(auto_now=True, verbose_name='changed')),
            ],
            options={
                'verbose_name': 'template',
                'verbose_name_plural': 'templates',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='DeclaredDocument',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField()),
                ('by', models.CharField(max_length=150, verbose_name='applied by')),
                ('via', models.CharField(max_length=10, verbose_name='through')),
                ('at', models.DateTimeField(auto_now_add=True, verbose_name='applied')),
                ('changed', models.PositiveIntegerField(default=0)),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'applied document',
                'verbose_name_plural': 'applied documents',
                'ordering': ['-pk'],
            },
        ),
    ]
