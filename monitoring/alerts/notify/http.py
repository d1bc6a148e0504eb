"""One POST with a deadline, to an address that was checked. Redirects are not followed."""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext_noop as _

from monitoring.alerts.notify.addresses import check_url, resolve
from monitoring.alerts.notify.errors import UndeliverableError
from monitoring.alerts.notify.formats import Post

SECONDS = 10.0
"""For the whole of it: name, connection, request and answer."""
MOST_BYTES = 16_384

SILENT = _("%(host)s did not answer within %(seconds)s s.")
UNREACHABLE = _("%(host)s cannot be reached: %(why)s.")
NOT_HTTP = _("%(host)s answered with something that is not HTTP.")
CERTIFICATE = _("The certificate of %(host)s is not trusted: %(why)s.")
MOVED = _(
    "%(host)s answers %(status)s and sends elsewhere. Enter the address it should be sent to."
)


def send(post: Post, seconds: float = SECONDS) -> tuple[int, bytes]:
    """Status and the beginning of the body; raises UndeliverableError."""
    scheme, host, port = check_url(post.url)
    until = time.monotonic() + seconds
    addresses = resolve(host, port, seconds)
    line = _Line(_connect(host, port, addresses, until))
    with line.shut_at(until):
        try:
            if scheme == "https":
                line.secure(host)
            status, body = _exchange(line.socket, post)
        except ssl.SSLCertVerificationError as error:
            raise UndeliverableError(CERTIFICATE, host=host, why=error.verify_message) from error
        except (OSError, ValueError) as error:
            if line.expired.is_set() or isinstance(error, TimeoutError):
                raise UndeliverableError(SILENT, host=host, seconds=round(seconds)) from error
            raise UndeliverableError(UNREACHABLE, host=host, why=_words(error)) from error
        except http.client.HTTPException as error:
            late = line.expired.is_set()
            raise UndeliverableError(
                SILENT if late else NOT_HTTP, host=host, seconds=round(seconds)
            ) from error
    if 300 <= status < 400:
        raise UndeliverableError(MOVED, final=True, host=host, status=status)
    return status, body


def _connect(host: str, port: int, addresses: list[str], until: float) -> socket.socket:
    last: OSError = TimeoutError()
    for address in addresses:
        left = until - time.monotonic()
        if left <= 0:
            break
        try:
            return socket.create_connection((address, port), timeout=left)
        except OSError as error:
            last = error
    if isinstance(last, TimeoutError):
        raise UndeliverableError(SILENT, host=host, seconds=round(SECONDS)) from last
    raise UndeliverableError(UNREACHABLE, host=host, why=_words(last)) from last


def _exchange(line: socket.socket, post: Post) -> tuple[int, bytes]:
    parts = urlsplit(post.url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = http.client.HTTPConnection(parts.netloc)
    connection.sock = line
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": f"Tandem/{settings.VERSION}",
        "Connection": "close",
        **post.headers,
    }
    connection.request("POST", path, body=post.body, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read(MOST_BYTES)


class _Line:
    """A connection that is shut in time: who sends a byte now and then cannot hold on to us."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.expired = threading.Event()

    def secure(self, host: str) -> None:
        context = ssl.create_default_context()
        self.socket = context.wrap_socket(
            self.socket, server_hostname=host, do_handshake_on_connect=False
        )
        self.socket.do_handshake()

    @contextmanager
    def shut_at(self, until: float) -> Iterator[None]:
        timer = threading.Timer(max(0.0, until - time.monotonic()), self._shut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self.socket.close()

    def _shut(self) -> None:
        self.expired.set()
        with suppress(OSError):  # Underneath TLS, whose own farewell would wait for an answer.
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)


def _words(error: OSError | ValueError) -> str:
    strerror = getattr(error, "strerror", None)
    return str(strerror or error or type(error).__name__)
