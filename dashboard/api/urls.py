"""Addresses of the API for programs that manage."""

from django.urls import path

from dashboard.api import views

DEPLOYMENT = "deployments/<slug:name>"
NODE = "nodes/<slug:name>"
NUMBER = "revisions/<int:number>"

urlpatterns = [
    path("openapi.json", views.description, name="manage-openapi"),
    path("settings/<slug:catalogue>", views.catalogue, name="manage-catalogue"),
    path("deployments", views.deployments, name="manage-deployments"),
    path(f"{DEPLOYMENT}/settings", views.deployment_settings, name="manage-deployment-settings"),
    path(f"{DEPLOYMENT}/revisions", views.deployment_revisions, name="manage-deployment-revisions"),
    path(f"{DEPLOYMENT}/{NUMBER}/apply", views.deployment_apply, name="manage-deployment-apply"),
    path(f"{DEPLOYMENT}/{NUMBER}/back", views.deployment_back, name="manage-deployment-back"),
    path("nodes", views.nodes, name="manage-nodes"),
    path(f"{NODE}/settings", views.node_settings, name="manage-node-settings"),
    path(f"{NODE}/revisions", views.node_revisions, name="manage-node-revisions"),
    path(f"{NODE}/{NUMBER}/back", views.node_back, name="manage-node-back"),
    path("panel/settings", views.panel, name="manage-panel-settings"),
    path("panel/revisions", views.panel_revisions, name="manage-panel-revisions"),
    path(f"panel/{NUMBER}/back", views.panel_back, name="manage-panel-back"),
]
