"""HTTP routes. Each concern lists its own; this file only joins them."""

from django.contrib import admin
from django.urls import include, path
from django.views.i18n import JavaScriptCatalog

urlpatterns = [
    path("", include("dashboard.health")),
    path("", include("dashboard.views.urls")),
    path("", include("dashboard.gateway.urls")),
    path("admin/", admin.site.urls),
    path("i18n.js", JavaScriptCatalog.as_view(packages=["dashboard"]), name="javascript-catalog"),
]
