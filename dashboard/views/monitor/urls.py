"""The pages under Monitor, in the order of their tabs."""

from django.urls import URLPattern, URLResolver
from django.utils.translation import gettext_lazy as _

urlpatterns: list[URLPattern | URLResolver] = []
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
