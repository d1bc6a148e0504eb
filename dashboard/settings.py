"""Every Django setting. Values from the environment are read strictly (`dashboard/env.py`)."""

import secrets
from datetime import timedelta
from pathlib import Path

from django.utils.translation import gettext_lazy as _

import engine
from dashboard import admin_theme, env
from engine import logs

BASE_DIR = Path(__file__).resolve().parent.parent
STATE_DIR = env.state_dir(BASE_DIR)
VERSION = engine.VERSION

DEBUG = env.flag("TANDEM_DEBUG", False)


def _secret_key() -> str:
    """From TANDEM_SECRET_KEY, else made once and kept in the state directory, else for this run."""
    if key := env.text("TANDEM_SECRET_KEY"):
        return key
    path = STATE_DIR / "secrets" / "django-key"
    return path.read_text().strip() if path.exists() else secrets.token_urlsafe(48)


SECRET_KEY = _secret_key()
VAULT_KEYS = env.vault_keys("TANDEM_VAULT_KEYS")
VAULT_FILE = STATE_DIR / "secrets" / "vault-keys"
ALLOWED_HOSTS = env.names("TANDEM_ALLOWED_HOSTS", ["*"])
CSRF_TRUSTED_ORIGINS = env.origins("TANDEM_TRUSTED_ORIGINS")
ENGINE_PORTS = env.port_range("TANDEM_ENGINE_PORTS", "21000-30999")

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "django_htmx",
    "django_celery_beat",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.mfa",
    "allauth.usersessions",
    "monitoring",
    "dashboard",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "dashboard.middleware.content_security_policy",
    "dashboard.static_files.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "dashboard.middleware.PanelLanguage",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "dashboard.identity.guard.require_second_factor",
    "dashboard.identity.teams.hide_from_others",
    "django.contrib.messages.middleware.MessageMiddleware",
    "dashboard.middleware.audit_trail",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "dashboard.urls"
ASGI_APPLICATION = "dashboard.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "dashboard.context.frame",
            ],
        },
    },
]

DATABASES = {
    "default": {**env.database("DATABASE_URL"), "CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": True}
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.text("REDIS_URL", "redis://127.0.0.1:6379/0")
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "tandem"},
    },
}

CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 3600}
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"

TELEMETRY_KEEP = env.telemetry_keep(
    env.integer("TANDEM_KEEP_SECONDS_DAYS", 2, 1, 60),
    env.integer("TANDEM_KEEP_MINUTES_DAYS", 60, 1, 3_660),
    env.integer("TANDEM_KEEP_HOURS_DAYS", 1_096, 1, 36_600),
)
REQUESTS_KEEP = timedelta(days=env.integer("TANDEM_KEEP_REQUESTS_DAYS", 7, 1, 3_660))

PUBLIC_URL = env.address("TANDEM_PUBLIC_URL")
_MAIL = env.mail("TANDEM_SMTP_URL")
EMAIL_HOST = _MAIL["EMAIL_HOST"]
EMAIL_PORT = _MAIL["EMAIL_PORT"]
EMAIL_HOST_USER = _MAIL["EMAIL_HOST_USER"]
EMAIL_HOST_PASSWORD = _MAIL["EMAIL_HOST_PASSWORD"]
EMAIL_USE_TLS = _MAIL["EMAIL_USE_TLS"]
EMAIL_USE_SSL = _MAIL["EMAIL_USE_SSL"]
DEFAULT_FROM_EMAIL = env.text("TANDEM_MAIL_FROM") or "tandem@localhost"

PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTHENTICATION_BACKENDS = [
    "dashboard.identity.passwords.PasswordGate",
    "django.contrib.auth.backends.ModelBackend",
]
# Attempts to sign in are counted where every process sees them.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "dashboard_attempts",
        # Beyond that some are dropped: nobody should reach it by trying many names.
        "OPTIONS": {"MAX_ENTRIES": 200_000},
    }
}
ACCOUNT_ADAPTER = "dashboard.identity.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_UNIQUE_EMAIL = False
ACCOUNT_RATE_LIMITS = {"login": "30/m/ip", "login_failed": "20/m/ip,8/5m/key"}
SOCIALACCOUNT_ADAPTER = "dashboard.identity.adapters.SocialAdapter"
SOCIALACCOUNT_REQUESTS_TIMEOUT = 8
MFA_ADAPTER = "dashboard.identity.factors.MfaAdapter"
MFA_TOTP_TOLERANCE = 1
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "sign-in"
SESSION_COOKIE_NAME = "tandem_session"
CSRF_COOKIE_NAME = "tandem_csrf"
LANGUAGE_COOKIE_NAME = "tandem_language"
SESSION_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024
FIRMWARE_MOST_BYTES = env.integer("TANDEM_FIRMWARE_MOST_MB", 4096, 1, 65536) << 20
FILE_UPLOAD_TEMP_DIR = STATE_DIR if STATE_DIR.is_dir() else None

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

UNFOLD = admin_theme.UNFOLD

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static", ("plotly", env.package_folder("plotly") / "package_data")]
WHITENOISE_USE_FINDERS = True
WHITENOISE_ALLOW_ALL_ORIGINS = False
WHITENOISE_AUTOREFRESH = DEBUG

LOG_FORMAT = env.choice("TANDEM_LOG_FORMAT", "text", ("text", "json"))
_LOG_LEVEL = env.log_level("TANDEM_LOG_LEVEL", "INFO")
logs.hide(SECRET_KEY, str(DATABASES["default"]["PASSWORD"]), str(EMAIL_HOST_PASSWORD), *VAULT_KEYS)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {
            "()": logs.TextFormatter,
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        },
        "json": {"()": logs.JsonFormatter},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["console"], "level": _LOG_LEVEL},
    # The web server has set up its own by then.
    "loggers": {
        "uvicorn": {"handlers": ["console"], "level": _LOG_LEVEL, "propagate": False},
        "uvicorn.error": {"handlers": [], "level": _LOG_LEVEL, "propagate": True},
        "uvicorn.access": {"handlers": [], "propagate": False},
    },
}
