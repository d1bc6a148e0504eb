"""The panel's own pages."""

from django.urls import include, path, re_path
from django.views.i18n import set_language

from dashboard.views import deployments, models, nodes, revisions, sources
from dashboard.views.engine import deployment_engine
from dashboard.views.overview import overview

urlpatterns = [
    path("", overview, name="overview"),
    path("", include("dashboard.views.settings.urls")),
    path("", include("dashboard.views.identity.urls")),
    path("language/", set_language, name="set_language"),
    path("models/", models.models, name="models"),
    path("models/demo/experts/", models.add_experts_demo, name="experts-demo"),
    path("models/<slug:name>/", models.model_detail, name="model-detail"),
    path("nodes/", nodes.nodes, name="nodes"),
    path("nodes/<slug:name>/token/", nodes.node_token, name="node-token"),
    path("nodes/<slug:name>/", nodes.node_detail, name="node-detail"),
    path("nodes/<slug:name>/sources/", sources.sources, name="node-sources"),
    path("nodes/<slug:name>/sources/new/<slug:kind>/", sources.source_new, name="source-new"),
    path("nodes/<slug:name>/sources/<int:pk>/", sources.source_edit, name="source-edit"),
    path("nodes/<slug:name>/sources/<int:pk>/remove/", sources.source_remove, name="source-remove"),
    path(
        "nodes/<slug:name>/sources/<int:pk>/calibrate/",
        sources.source_calibrate,
        name="source-calibrate",
    ),
    re_path(
        r"^nodes/(?P<name>[-\w]+)/(?P<action>open|close|remove)/$",
        nodes.node_act,
        name="node-act",
    ),
    re_path(
        r"^nodes/(?P<name>[-\w]+)/(?P<action>evacuate|give-back)/$",
        nodes.node_service,
        name="node-service",
    ),
    path("deployments/", deployments.deployments, name="deployments"),
    path("deployments/new/", deployments.deployment_new, name="deployment-new"),
    path("deployments/<slug:name>/", deployments.deployment_detail, name="deployment-detail"),
    path(
        "deployments/<slug:name>/settings/",
        revisions.deployment_settings,
        name="deployment-settings",
    ),
    path(
        "deployments/<slug:name>/revisions/",
        revisions.deployment_revisions,
        name="deployment-revisions",
    ),
    path(
        "deployments/<slug:name>/revisions/<int:number>/",
        revisions.deployment_revision,
        name="deployment-revision",
    ),
    re_path(
        r"^deployments/(?P<name>[-\w]+)/revisions/(?P<number>\d{1,9})/(?P<action>apply|back)/$",
        revisions.revision_act,
        name="revision-act",
    ),
    path("deployments/<slug:name>/engine/", deployment_engine, name="deployment-engine"),
    re_path(
        r"^deployments/(?P<name>[-\w]+)/(?P<action>deploy|stop|restart|return|delete)/$",
        deployments.deployment_act,
        name="deployment-act",
    ),
]
