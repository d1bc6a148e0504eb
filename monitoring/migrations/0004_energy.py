from decimal import Decimal

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import monitoring.models.energy
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0003_alerts"),
        ("dashboard", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name='NodeLimits',
            fields=[
                ('node', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='limits', serialize=False, to='dashboard.node')),
                ('wanted', models.JSONField(default=dict)),
                ('states', models.JSONField(default=list)),
                ('reported', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='Outlay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80, verbose_name='name')),
                ('amount', models.DecimalField(decimal_places=2, max_digits=14, validators=[django.core.validators.MinValueValidator(Decimal('0'))], verbose_name='amount')),
                ('every', models.CharField(choices=[('once', 'once (purchase)'), ('month', 'every month'), ('year', 'every year')], default='once', max_length=10, verbose_name='how often')),
                ('since', models.DateField(verbose_name='from')),
            ],
            options={
                'ordering': ['every', 'since', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='TariffRate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(blank=True, max_length=60, verbose_name='name')),
                ('since', models.DateField(verbose_name='from')),
                ('days', django.contrib.postgres.fields.ArrayField(base_field=models.PositiveSmallIntegerField(), default=monitoring.models.energy.every_day, size=None, verbose_name='days')),
                ('begins', models.TimeField(verbose_name='begins')),
                ('ends', models.TimeField(verbose_name='ends')),
                ('price', models.DecimalField(decimal_places=5, max_digits=10, validators=[django.core.validators.MinValueValidator(Decimal('0'))], verbose_name='price per kWh')),
            ],
            options={
                'ordering': ['-since', 'begins', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='PriceList',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('currency', models.CharField(default='EUR', max_length=3, verbose_name='currency')),
                ('zone', models.CharField(default='UTC', max_length=64, verbose_name='time zone')),
                ('vat_percent', models.DecimalField(decimal_places=2, default=Decimal('0'), max_digits=5, validators=[django.core.validators.MinValueValidator(Decimal('0')), django.core.validators.MaxValueValidator(Decimal('100'))], verbose_name='VAT')),
                ('vat_entered', models.BooleanField(default=True, verbose_name='prices are entered with VAT')),
                ('vat_shown', models.BooleanField(default=True, verbose_name='sums are shown with VAT')),
                ('cloud_name', models.CharField(blank=True, max_length=80, verbose_name='compared with')),
                ('cloud_prompt', models.DecimalField(blank=True, decimal_places=4, max_digits=12, null=True, validators=[django.core.validators.MinValueValidator(Decimal('0'))], verbose_name='per million tokens read')),
                ('cloud_generated', models.DecimalField(blank=True, decimal_places=4, max_digits=12, null=True, validators=[django.core.validators.MinValueValidator(Decimal('0'))], verbose_name='per million tokens written')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('pk', 1)), name='one_price_list')],
            },
        ),
        migrations.CreateModel(
            name='QuietRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60, unique=True, verbose_name='name')),
                ('enabled', models.BooleanField(default=True, verbose_name='in force')),
                ('always', models.BooleanField(default=False, verbose_name='always')),
                ('days', django.contrib.postgres.fields.ArrayField(base_field=models.PositiveSmallIntegerField(), default=monitoring.models.energy.every_day, size=None, verbose_name='days')),
                ('begins', models.TimeField(blank=True, null=True, verbose_name='begins')),
                ('ends', models.TimeField(blank=True, null=True, verbose_name='ends')),
                ('zone', models.CharField(default='UTC', max_length=64, verbose_name='time zone')),
                ('power_watts', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='power limit')),
                ('clock_mhz', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(100)], verbose_name='highest clock')),
                ('batch_cap', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='answers at once')),
                ('deployment', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='quiet_rules', to='dashboard.deployment', verbose_name='deployment')),
                ('node', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='quiet_rules', to='dashboard.node', verbose_name='node')),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='LimitSpan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('since', models.DateTimeField()),
                ('until', models.DateTimeField(null=True)),
                ('why', models.TextField()),
                ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='limit_spans', to='dashboard.node')),
            ],
            options={
                'ordering': ['-since', '-pk'],
                'indexes': [models.Index(fields=['node', 'since'], name='limit_span_by_node')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('until', None)), fields=('node',), name='one_open_span_per_node')],
            },
        ),
    ]
