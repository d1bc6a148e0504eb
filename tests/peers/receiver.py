"""A receiver of messages on this machine: keeps what it was sent and answers as it is told."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Taken:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    url: str = ""
    status: int = 200
    answer: bytes = b"ok"
    location: str = ""
    taken: list[Taken] = field(default_factory=list)
    free: threading.Event = field(default_factory=threading.Event)
    """Set: it answers. Cleared: it keeps the caller waiting."""


@contextmanager
def receiver(context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Listens on a free port of loopback until the block ends."""
    peer = Receiver()
    peer.free.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            peer.taken.append(Taken(self.path, dict(self.headers), body))
            peer.free.wait(20)
            self.send_response(peer.status)
            if peer.location:
                self.send_header("Location", peer.location)
            self.send_header("Content-Length", str(len(peer.answer)))
            self.end_headers()
            self.wfile.write(peer.answer)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A caller that hangs up is part of the tests."""

    server = Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if context is None else "https"
    peer.url = f"{scheme}://127.0.0.1:{server.server_address[1]}/hook/token-of-the-address"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield peer
    finally:
        peer.free.set()
        server.shutdown()
        thread.join(20)
        server.server_close()
