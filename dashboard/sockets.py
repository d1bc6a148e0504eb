"""WebSocket routes."""

from django.urls import URLPattern, path

from monitoring.consumers import TelemetryConsumer

websocket_urlpatterns: list[URLPattern] = [
    path("ws/telemetry", TelemetryConsumer.as_asgi()),
]
