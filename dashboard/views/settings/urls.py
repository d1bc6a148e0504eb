"""The pages under Settings that are made from declarations."""

from django.urls import path, re_path

from dashboard.views.settings import nodes, panel

urlpatterns = [
    path("settings/", panel.panel, name="settings"),
    path("settings/revisions/<int:number>/back/", panel.back, name="settings-back"),
    path("nodes/<slug:name>/settings/", nodes.node_settings, name="node-settings"),
    re_path(
        r"^nodes/(?P<name>[-\w]+)/settings/revisions/(?P<number>\d+)/back/$",
        nodes.back,
        name="node-settings-back",
    ),
]
