"""Models: imported by the panel; only what a person may word is editable."""

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest

from dashboard.admin.base import PanelAdmin
from dashboard.choices import RevisionState
from dashboard.models import Model, Revision


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

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Not while a deployment is on its way to it."""
        if obj is not None:
            named = Q(content__model=obj.name) | Q(content__fallback__model=obj.name)
            if Revision.objects.filter(named, state=RevisionState.APPLYING).exists():
                return False
        return super().has_delete_permission(request, obj)
