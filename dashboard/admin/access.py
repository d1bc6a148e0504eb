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

from dashboard.access import role_of
from dashboard.admin.base import Audited, PanelAdmin
from dashboard.audit import actor_of, note
from dashboard.choices import Role
from dashboard.models import ApiKey, Conversation

if TYPE_CHECKING:
    _UserAdmin = DjangoUserAdmin[User]
    _GroupAdmin = DjangoGroupAdmin
else:

    class _UserAdmin(DjangoUserAdmin, Audited):
        pass

    class _GroupAdmin(DjangoGroupAdmin, Audited):
        pass


admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(_UserAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    readonly_fields = ["is_active", "is_staff", "is_superuser", "last_login", "date_joined"]
    """Roles are given, and accounts switched off, under Settings: there somebody always stays."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Not of administrators: give them another role first."""
        if isinstance(obj, User) and role_of(obj) == Role.ADMIN:
            return False
        return super().has_delete_permission(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        found, counts, needed, kept = super().get_deleted_objects(objs, request)
        administrators = [str(user) for user in objs if role_of(user) == Role.ADMIN]
        return found, counts, needed, [*kept, *administrators]


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
        live = queryset.filter(revoked=None)
        names = [str(key) for key in live]
        live.update(revoked=timezone.now())
        note(actor_of(request, "admin"), "key.revoke", ", ".join(names))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return obj is None and super().has_change_permission(request, obj)


@admin.register(Conversation)
class ConversationAdmin(PanelAdmin):
    """Whose and when, for cleaning up; what was said stays between them and the model."""

    list_display = ["user", "route", "created", "updated"]
    list_filter = ["user", "route"]
    readonly_fields = ["user", "route", "created", "updated"]
    fields = [*readonly_fields]
