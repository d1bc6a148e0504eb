"""What every page of the administration shares."""

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest

if TYPE_CHECKING:
    from django.contrib import admin

    _ModelAdmin = admin.ModelAdmin[Any]
    _TabularInline = admin.TabularInline[Any, Any]
else:
    from unfold.admin import ModelAdmin as _ModelAdmin
    from unfold.admin import TabularInline as _TabularInline


class PanelAdmin(_ModelAdmin):
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
