"""HTTP and WebSocket entry."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

django = get_asgi_application()

# Models can be imported only now that the apps are loaded.
from dashboard import leaving
from dashboard.consumers.agent import AgentConsumer
from dashboard.consumers.origin import SameOrigin
from dashboard.gateway.budgets.ledger import ledger
from dashboard.gateway.limit import BodyLimit
from dashboard.gateway.opened import CloseOpened
from dashboard.gateway.record_writer import record_writer
from dashboard.gateway.upstream import close_session
from dashboard.identity.guard import SocketGuard
from dashboard.sockets import websocket_urlpatterns

agents = AgentConsumer.as_asgi()
browsers = SameOrigin(AuthMiddlewareStack(SocketGuard(URLRouter(websocket_urlpatterns))))


async def websocket(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Agents bring a token, browsers a cookie; only the latter need protecting from other sites."""
    socket = agents if scope["path"] == "/ws/agent" else browsers
    await socket(scope, receive, send)


async def lifespan(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The server's own start and stop."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            leaving.watch()
        if message["type"] == "lifespan.shutdown":
            await close_session()
            await record_writer().close()
            await ledger().close()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


application = ProtocolTypeRouter(
    {"http": BodyLimit(CloseOpened(django)), "websocket": websocket, "lifespan": lifespan}
)
