"""TLS before the application: connections that nobody takes while the BMC starts anew."""

import socket
import ssl
from typing import Any

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from tests.peers.lab_bmc.box import Box


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # One packet an answer.

    def log(self, *arguments: Any) -> None: ...

    def connection_dropped(self, *arguments: Any) -> None: ...


class Front(ThreadedWSGIServer):
    daemon_threads = True

    def __init__(self, box: Box, app: Any, certificate: str) -> None:
        super().__init__("127.0.0.1", 0, app, handler=Quiet)
        self.box = box
        self.certificate = certificate
        self.ssl_context = self._context()

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.box.knobs.certificate or self.certificate)
        return context

    def get_request(self) -> tuple[socket.socket, Any]:
        plain, address = self.socket.accept()
        if self.box.silent and not self.box.knobs.busy:
            plain.close()
            self.box.ask_in_vain()
            raise OSError("It starts anew.")
        # The handshake is made by the thread that answers.
        wrapped = self._context().wrap_socket(
            plain, server_side=True, do_handshake_on_connect=False
        )
        return wrapped, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up or trust it not are what some tests are about."""
