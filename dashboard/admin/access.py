"""People, their keys and their conversations. No secret and nobody's words are shown."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from dashboard.admin.base import PanelAdmin
from dashboard.models import ApiKey, Conversation

if TYPE_CHECKING:
    _UserAdmin = DjangoUserAdmin[User]
    _GroupAdmin = DjangoGroupAdmin
else:
    from unfold.admin import ModelAdmin

    class _UserAdmin(DjangoUserAdmin, ModelAdmin):
        pass

    class _GroupAdmin(DjangoGroupAdmin, ModelAdmin):
        pass


admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(_UserAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class GroupAdmin(_GroupAdmin):
    pass


@admin.register(ApiKey)
class ApiKeyAdmin(PanelAdmin):
    list_display = ["name", "prefix", "user", "created", "last_used", "revoked"]
    list_filter = ["user"]
    search_fields = ["name", "prefix"]
    readonly_fields = ["user", "name", "prefix", "created", "last_used", "revoked"]
    fields = [*readonly_fields]
    actions = ["revoke"]

    @admin.action(description=_("Revoke the selected keys"))
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        queryset.filter(revoked=None).update(revoked=timezone.now())

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return obj is None and super().has_change_permission(request, obj)


@admin.register(Conversation)
class ConversationAdmin(PanelAdmin):
    """Whose and when, for cleaning up; what was said stays between them and the model."""

    list_display = ["user", "route", "created", "updated"]
    list_filter = ["user", "route"]
    readonly_fields = ["user", "route", "created", "updated"]
    fields = [*readonly_fields]
