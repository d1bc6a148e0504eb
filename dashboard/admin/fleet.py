"""Nodes: added by the panel, because their token is shown once there."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from dashboard.admin.base import PanelAdmin
from dashboard.choices import NodeStatus
from dashboard.models import Node


@admin.register(Node)
class NodeAdmin(PanelAdmin):
    list_display = ["name", "address", "status", "schedulable", "last_seen"]
    list_filter = ["status", "schedulable"]
    search_fields = ["name", "address"]
    fields = [
        "name",
        "address",
        "link_address",
        "schedulable",
        "status",
        "reason",
        "last_seen",
        "connected_at",
        "inventory",
        "created",
    ]
    readonly_fields = [
        "name",
        "link_address",
        "status",
        "reason",
        "last_seen",
        "connected_at",
        "inventory",
        "created",
    ]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        connected = isinstance(obj, Node) and obj.status == NodeStatus.ONLINE
        return not connected and super().has_delete_permission(request, obj)
