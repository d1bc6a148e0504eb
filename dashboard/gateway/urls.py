"""Routes under `/v1`."""

from django.urls import path, re_path

from dashboard.gateway import views

urlpatterns = [
    path("v1/chat/completions", views.chat_completions, name="chat-completions"),
    path("v1/completions", views.completions, name="completions"),
    path("v1/streams/<str:stream>", views.stream, name="api-stream"),
    path("v1/models", views.models, name="api-models"),
    path("v1/models/<str:name>", views.model, name="api-model"),
    re_path(r"^v1(?:/.*)?$", views.unknown),
]
