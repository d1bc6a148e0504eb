"""The panel's own pages."""

from django.urls import path
from django.views.i18n import set_language

from dashboard.views.deployments import deployments
from dashboard.views.models import models
from dashboard.views.nodes import nodes
from dashboard.views.overview import overview
from dashboard.views.session import sign_in, sign_out

urlpatterns = [
    path("", overview, name="overview"),
    path("sign-in/", sign_in, name="sign-in"),
    path("sign-out/", sign_out, name="sign-out"),
    path("language/", set_language, name="set_language"),
    path("models/", models, name="models"),
    path("nodes/", nodes, name="nodes"),
    path("deployments/", deployments, name="deployments"),
]
