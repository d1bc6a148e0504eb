"""What every page of the administration shares."""

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest

from dashboard.audit import actor_of, note
from dashboard.views.trail import note_form

if TYPE_CHECKING:
    from django.contrib import admin

    _ModelAdmin = admin.ModelAdmin[Any]
    _TabularInline = admin.TabularInline[Any, Any]
else:
    from unfold.admin import ModelAdmin as _ModelAdmin
    from unfold.admin import TabularInline as _TabularInline


class Audited(_ModelAdmin):
    """What is changed here stands in the audit trail like everything else."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        done = "change" if change else "add"
        note_form(request, f"admin.{self._what}.{done}", str(obj), form, via="admin")

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        name = str(obj)
        super().delete_model(request, obj)
        note(actor_of(request, "admin"), f"admin.{self._what}.delete", name)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        names = [str(obj) for obj in queryset]
        super().delete_queryset(request, queryset)
        note(actor_of(request, "admin"), f"admin.{self._what}.delete", ", ".join(names))

    @property
    def _what(self) -> str:
        return str(self.opts.model_name)


class PanelAdmin(Audited):
    """Rows are made by the panel, never here: a form would skip the checks and the lifecycle."""

    list_per_page = 50
    actions: Any = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


class ReadOnlyAdmin(PanelAdmin):
    """To look at; only the lifecycle writes these."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyInline(_TabularInline):
    extra = 0
    can_delete = False
    show_change_link = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
