import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

ATTEMPTS = """
CREATE TABLE dashboard_attempts (
    cache_key varchar(255) NOT NULL PRIMARY KEY,
    value text NOT NULL,
    expires timestamp with time zone NOT NULL
);
CREATE INDEX dashboard_attempts_expires ON dashboard_attempts (expires);
"""


class Migration(migrations.Migration):

    dependencies = [
        ("dashboard", "0013_firmware_updates"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(ATTEMPTS, "DROP TABLE dashboard_attempts"),
        migrations.CreateModel(
            name="Secret",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=63, unique=True, validators=[django.core.validators.RegexValidator("\\A[a-z0-9][a-z0-9._-]{0,62}\\Z", "Small letters, digits, dots, dashes and underscores, like hub-token.")], verbose_name="name")),
                ("kind", models.CharField(choices=[("hub-token", "Token of a model hub"), ("webhook-key", "Key of a webhook"), ("password", "Password"), ("other", "Something else")], max_length=12, verbose_name="kind")),
                ("sealed", models.TextField()),
                ("hint", models.CharField(blank=True, max_length=3)),
                ("changed", models.DateTimeField(verbose_name="changed")),
                ("last_used", models.DateTimeField(null=True, verbose_name="last used")),
                ("by", models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL)),
            ],
            options={"verbose_name": "secret", "verbose_name_plural": "secrets", "ordering": ["name"]},
        ),
        migrations.CreateModel(
            name="IdentityProvider",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.CharField(blank=True, max_length=40, verbose_name="name on the button")),
                ("issuer", models.CharField(blank=True, max_length=300, verbose_name="issuer")),
                ("client_id", models.CharField(blank=True, max_length=300, verbose_name="client ID")),
                ("scopes", models.CharField(default="openid profile email", max_length=300, verbose_name="scopes")),
                ("ca", models.TextField(blank=True, verbose_name="certificate authority")),
                ("domains", models.JSONField(default=list, verbose_name="allowed e-mail domains")),
                ("create", models.BooleanField(default=True, verbose_name="make accounts")),
                ("groups_claim", models.CharField(blank=True, max_length=100, verbose_name="claim of groups")),
                ("groups", models.JSONField(default=dict)),
                ("default_role", models.CharField(blank=True, choices=[("viewer", "Viewer"), ("member", "Member"), ("operator", "Operator"), ("admin", "Administrator")], default="viewer", max_length=10, verbose_name="role of everybody else")),
                ("came", models.JSONField(default=list)),
                ("own_factor", models.BooleanField(default=False, verbose_name="asks for a second factor itself")),
                ("changed", models.DateTimeField(auto_now=True)),
                ("secret", models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to="dashboard.secret", verbose_name="client secret")),
            ],
            options={"verbose_name": "identity provider", "verbose_name_plural": "identity providers"},
        ),
    ]
