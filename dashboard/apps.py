from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DashboardConfig(AppConfig):
    name = "dashboard"
    verbose_name = _("Fleet")

    def ready(self) -> None:
        from dashboard.telemetry import subjects
        from monitoring import scopes

        scopes.register(subjects)
