"""Deployments, their launches and ranks: statuses belong to the lifecycle."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest

from dashboard import lifecycle
from dashboard.admin.base import PanelAdmin, ReadOnlyAdmin, ReadOnlyInline
from dashboard.audit import actor_of, note
from dashboard.choices import DeploymentStatus
from dashboard.errors import StatusConflict
from dashboard.models import Deployment, Fallback, Rank, Replica


class FallbackInline(ReadOnlyInline):
    model = Fallback
    readonly_fields = ["mode", "returns", "model", "tp", "dtype", "kv_dtype", "kv_cache_tokens"]
    fields = [*readonly_fields]


@admin.register(Deployment)
class DeploymentAdmin(PanelAdmin):
    list_display = ["name", "model", "tp", "pp", "dtype", "status", "restarts", "changed"]
    list_filter = ["status", "model"]
    search_fields = ["name"]
    readonly_fields = [
        "name",
        "model",
        "driver",
        "tp",
        "pp",
        "ep",
        "dp",
        "rank_weights",
        "dtype",
        "int4_group",
        "kv_dtype",
        "transport",
        "max_model_len",
        "max_batch_size",
        "kv_cache_tokens",
        "target_itl_ms",
        "wanted",
        "status",
        "reason",
        "restarts",
        "ready_at",
        "created",
        "changed",
    ]
    fields = [*readonly_fields]
    inlines = [FallbackInline]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        running = isinstance(obj, Deployment) and obj.status != DeploymentStatus.STOPPED
        return not running and super().has_delete_permission(request, obj)

    def delete_model(self, request: HttpRequest, obj: Deployment) -> None:
        try:
            name = obj.name
            lifecycle.delete_deployment(obj, request.user.get_username())
            note(actor_of(request, "admin"), "deployment.delete", name)
        except StatusConflict as error:
            messages.error(request, str(error))


class RankInline(ReadOnlyInline):
    model = Rank
    readonly_fields = [
        "rank",
        "node",
        "status",
        "detail",
        "pid",
        "exit_code",
        "kernel",
        "transport",
    ]
    fields = [*readonly_fields]


@admin.register(Replica)
class ReplicaAdmin(ReadOnlyAdmin):
    list_display = [
        "launch",
        "deployment",
        "role",
        "index",
        "status",
        "head_node",
        "created",
        "ended_at",
    ]
    list_filter = ["status", "deployment"]
    search_fields = ["launch"]
    exclude = ["token"]
    inlines = [RankInline]
