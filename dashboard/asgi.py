"""HTTP and WebSocket entry."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import OriginValidator  # noqa: F401
from django.core.asgi import get_asgi_application

http = get_asgi_application()

from dashboard.sockets import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {"http": http, "websocket": AuthMiddlewareStack(URLRouter(websocket_urlpatterns))}
)
