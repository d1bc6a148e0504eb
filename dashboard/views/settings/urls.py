"""The pages under Settings that are made from declarations."""

from django.urls import path, re_path

from dashboard.views.settings import audit, documents, nodes, panel, people, teams, templates

urlpatterns = [
    path("settings/", panel.panel, name="settings"),
    path("settings/revisions/<int:number>/back/", panel.back, name="settings-back"),
    path("settings/reference/", documents.reference, name="settings-reference"),
    path("settings/file/", documents.as_file, name="declared"),
    path("settings/file/tandem.yaml", documents.document, name="declared-document"),
    path("settings/templates/", templates.templates, name="templates"),
    path("settings/templates/<int:pk>/remove/", templates.remove, name="template-remove"),
    path("deployments/<slug:name>/template/", templates.keep, name="template-keep"),
    path("settings/people/", people.people, name="people"),
    re_path(
        r"^settings/people/(?P<pk>\d{1,9})/(?P<action>role|on|off|password)/$",
        people.person_act,
        name="person-act",
    ),
    path("settings/teams/", teams.teams, name="teams"),
    path("settings/teams/<int:pk>/", teams.team, name="team"),
    path("settings/teams/<int:pk>/remove/", teams.team_remove, name="team-remove"),
    path("settings/audit/", audit.audit, name="audit"),
    re_path(r"^settings/audit\.(?P<form>csv|jsonl)$", audit.audit_export, name="audit-export"),
    path("nodes/<slug:name>/settings/", nodes.node_settings, name="node-settings"),
    re_path(
        r"^nodes/(?P<name>[-\w]+)/settings/revisions/(?P<number>\d{1,9})/back/$",
        nodes.back,
        name="node-settings-back",
    ),
]
