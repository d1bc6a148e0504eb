"""Models: imported by the panel; only what a person may word is editable."""

from django.contrib import admin

from dashboard.admin.base import PanelAdmin
from dashboard.models import Model


@admin.register(Model)
class ModelAdmin(PanelAdmin):
    list_display = ["name", "title", "quantization", "license", "created"]
    search_fields = ["name", "title", "path"]
    fields = [
        "name",
        "title",
        "license",
        "path",
        "format",
        "quantization",
        "revision",
        "size_bytes",
        "parameters",
        "config",
        "created",
    ]
    readonly_fields = [
        "name",
        "path",
        "format",
        "quantization",
        "revision",
        "size_bytes",
        "parameters",
        "config",
        "created",
    ]
