"""WebSocket routes."""

from channels.security.websocket import WebsocketDenier
from django.urls import URLPattern, path, re_path

from dashboard.consumers.chat import ChatConsumer
from dashboard.consumers.events import EventsConsumer
from monitoring.live.consumers import TelemetryConsumer

websocket_urlpatterns: list[URLPattern] = [
    path("ws/events", EventsConsumer.as_asgi()),
    path("ws/chat", ChatConsumer.as_asgi()),
    path("ws/telemetry", TelemetryConsumer.as_asgi()),
    re_path("", WebsocketDenier.as_asgi()),  # unknown: refused, not a fault of the server
]
