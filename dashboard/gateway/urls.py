"""Routes under `/v1`."""

from django.urls import path, re_path

from dashboard.gateway import dialect_views, views

urlpatterns = [
    path("v1/chat/completions", views.chat_completions, name="chat-completions"),
    path("v1/completions", views.completions, name="completions"),
    path("v1/responses", dialect_views.responses, name="responses"),
    path("v1/responses/input_tokens", dialect_views.input_tokens, name="responses-input-tokens"),
    path("v1/responses/<str:name>", dialect_views.response, name="response"),
    path("v1/messages", dialect_views.messages, name="messages"),
    path("v1/messages/count_tokens", dialect_views.count_tokens, name="messages-count-tokens"),
    path("v1/openapi.json", dialect_views.openapi, name="api-openapi"),
    path("v1/streams/<str:stream>", views.stream, name="api-stream"),
    path("v1/models", views.models, name="api-models"),
    path("v1/models/<str:name>", views.model, name="api-model"),
    re_path(r"^v1(?:/.*)?$", views.unknown),
]
