from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DashboardConfig(AppConfig):
    name = "dashboard"
    verbose_name = _("Fleet")

    def ready(self) -> None:
        from dashboard import signing
        from dashboard.access import hidden_from
        from dashboard.alerting import PanelFleet
        from dashboard.telemetry import subjects
        from dashboard.wishes import PanelWishes
        from monitoring import scopes, wishes
        from monitoring.alerts import fleet

        scopes.register(subjects, hidden_from)
        fleet.register(PanelFleet())
        wishes.register(PanelWishes())
        signing.follow()
