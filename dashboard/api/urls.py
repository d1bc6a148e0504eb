"""Addresses of the API for programs that manage."""

from django.urls import path

from dashboard.api import views

urlpatterns = [
    path("openapi.json", views.description, name="manage-openapi"),
    path("settings/<slug:catalogue>", views.catalogue, name="manage-catalogue"),
    path(
        "deployments/<slug:name>/settings",
        views.deployment_settings,
        name="manage-deployment-settings",
    ),
    path(
        "deployments/<slug:name>/revisions",
        views.deployment_revisions,
        name="manage-deployment-revisions",
    ),
    path(
        "deployments/<slug:name>/revisions/<int:number>/back",
        views.deployment_back,
        name="manage-deployment-back",
    ),
    path("nodes/<slug:name>/settings", views.node_settings, name="manage-node-settings"),
    path("panel/settings", views.panel, name="manage-panel-settings"),
]
