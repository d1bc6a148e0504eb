"""HTTP routes. Each concern lists its own; this file only joins them."""

from django.contrib import admin
from django.urls import path
from django.views.i18n import JavaScriptCatalog

urlpatterns = [
    path("admin/", admin.site.urls),
    path("i18n.js", JavaScriptCatalog.as_view(packages=["dashboard"]), name="javascript-catalog"),
]
