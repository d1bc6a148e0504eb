"""HTTP routes. Each concern lists its own; this file only joins them."""

from django.contrib import admin
from django.urls import include, path
from django.views.i18n import JavaScriptCatalog

from dashboard.views.markers import telemetry_markers
from dashboard.views.metrics import metrics
from monitoring.views import telemetry_csv, telemetry_series

urlpatterns = [
    path("", include("dashboard.health")),
    path("", include("dashboard.views.urls")),
    path("", include("dashboard.gateway.urls")),
    path("", include("dashboard.views.chat")),
    path("monitor/", include("dashboard.views.monitor.urls")),
    path("api/v1/", include("dashboard.api.urls")),
    path("firmware/", include("dashboard.views.firmware.urls")),
    path("", include("dashboard.views.keys")),
    path("telemetry/series", telemetry_series, name="telemetry-series"),
    path("telemetry/series.csv", telemetry_csv, name="telemetry-csv"),
    path("telemetry/markers", telemetry_markers, name="telemetry-markers"),
    path("metrics", metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("i18n.js", JavaScriptCatalog.as_view(packages=["dashboard"]), name="javascript-catalog"),
]

handler500 = "dashboard.views.errors.server_error"
