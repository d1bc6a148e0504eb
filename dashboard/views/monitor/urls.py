"""The pages under Monitor, in the order of their tabs."""

from django.urls import URLPattern, URLResolver, include, path
from django.utils.translation import gettext_lazy as _

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("dashboard.views.monitor.now")),
    path("", include("dashboard.views.monitor.energy")),
    path("", include("dashboard.views.monitor.noise")),
    path("", include("dashboard.views.monitor.costs")),
    path("", include("dashboard.views.monitor.alerts")),
    path("", include("dashboard.views.monitor.rules")),
    path("", include("dashboard.views.monitor.channels")),
    path("", include("dashboard.views.monitor.incidents")),
    path("", include("dashboard.views.monitor.logs")),
    path("", include("dashboard.views.monitor.export")),
]
"""Each page appends its `path("", include("dashboard.views.monitor.<page>"))`."""

TABS = (
    ("monitor", _("Now")),
    ("monitor-energy", _("Energy")),
    ("monitor-noise", _("Noise")),
    ("monitor-costs", _("Costs")),
    ("alerts", _("Alerts")),
    ("incidents", _("Incidents")),
    ("logs", _("Logs")),
)
