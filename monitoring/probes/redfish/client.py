"""The way to a BMC: TLS that is always verified, deadlines, no redirects, and plain sentences.

The client library verifies nothing unless it is told to, so the adapter below decides alone; it
also reads the bodies, within a deadline and a size.
"""

import logging
import ssl
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import requests.exceptions as http
import urllib3.exceptions as wire
from redfish.rest.v1 import (
    AuthMethod,
    HttpClient,
    InvalidCredentialsError,
    JsonDecodingError,
    RetriesExhaustedError,
    ServerDownOrUnreachableError,
    SessionCreationError,
)
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from monitoring.probes.outside import SourceError
from monitoring.samples import gettext_noop
from monitoring.sources import RedfishSource

# It logs every request as news and whole bodies as errors; what went wrong is said here instead.
logging.getLogger("redfish").setLevel(logging.CRITICAL)

REQUEST_SECONDS = 10.0
MOST_BYTES = 4 * 1024 * 1024
LOCKOUT_SECONDS = 300.0
"""Between two tries of a password that was refused: BMCs lock accounts."""

REFUSED = gettext_noop("The BMC refused the user name or the password.")
FORBIDDEN = gettext_noop("The BMC does not let this user read it.")
UNTRUSTED = gettext_noop("The BMC's certificate is not one that this source trusts.")
NO_TLS = gettext_noop("What answers at the BMC's address does not speak TLS.")
SLOW = gettext_noop("The BMC did not answer within 10 s.")
UNREACHABLE = gettext_noop("Nothing answers at the BMC's address.")
BROKEN = gettext_noop("The BMC broke off in the middle of an answer.")
STRANGE = gettext_noop("What answers at the BMC's address is not Redfish.")
REDIRECT = gettext_noop("The BMC points to another address, which is not followed.")
FAILED = gettext_noop("The BMC answers with an error.")
NO_SESSION = gettext_noop(
    "The BMC opens no session; choose to send the password with each request."
)
SESSION_ENDED = gettext_noop("The BMC ended the session; a new one is being opened.")
NO_ADDRESS = gettext_noop("The BMC's address must be https://, a host and perhaps a port.")
NO_CA = gettext_noop("The certificate authority given for the BMC cannot be read.")


class Bmc:
    """One signed-in client. Every failure is a SourceError."""

    def __init__(self, source: RedfishSource) -> None:
        self._adapter = VerifiedTls(source)
        self._client = _Client(address_of(source.url), source, self._adapter)
        self._signed_in = False
        self.root: dict[str, Any] = {}
        try:
            self._sign_in(source)
        except SourceError:
            self.close()
            raise

    def get(self, path: str) -> dict[str, Any] | None:
        """A resource; None when the BMC has none there."""
        answer = self._ask(lambda: self._client.get(path))
        match answer.status:
            case 200:
                return _document(answer)
            case 401:
                raise SourceError(SESSION_ENDED)
            case 403:
                raise SourceError(FORBIDDEN)
            case status if 300 <= status < 400:
                raise SourceError(REDIRECT)
            case status if 400 <= status < 500:
                return None
        raise SourceError(FAILED)

    def close(self) -> None:
        """End the session, as far as the BMC still listens."""
        try:
            if self._signed_in:
                self._ask(self._client.logout)
        except SourceError:
            pass
        finally:
            self._signed_in = False
            self._adapter.close()

    def _sign_in(self, source: RedfishSource) -> None:
        self._ask(self._client.get_root_object)
        self.root = dict(self._client.root)
        links = self.root.get("Links")
        sessions = path_of(links, "Sessions") if isinstance(links, dict) else ""
        self._client.login_url = sessions or self._client.login_url
        auth = AuthMethod.SESSION if source.auth == "session" else AuthMethod.BASIC
        self._ask(lambda: self._client.login(auth=auth))
        self._signed_in = True

    def _ask(self, request: Any) -> Any:
        self._adapter.until = time.monotonic() + REQUEST_SECONDS
        try:
            return request()
        except InvalidCredentialsError as error:
            raise SourceError(REFUSED, wait=LOCKOUT_SECONDS) from error
        except SessionCreationError as error:
            raise SourceError(NO_SESSION) from error
        except RetriesExhaustedError as error:
            raise said(error) from error
        except ServerDownOrUnreachableError as error:
            redirected = error.response is not None and 300 <= error.response.status < 400
            raise SourceError(REDIRECT if redirected else STRANGE) from error
        except (JsonDecodingError, KeyError, ValueError, TypeError, AttributeError) as error:
            # The library trips over documents that are not what they should be.
            raise SourceError(STRANGE) from error


class _Client(HttpClient):  # type: ignore[misc]  # the library is untyped
    def __init__(self, address: str, source: RedfishSource, adapter: "VerifiedTls") -> None:
        super().__init__(
            address,
            username=source.username,
            password=source.password,
            timeout=REQUEST_SECONDS,
            max_retry=0,
            check_connectivity=False,
            https_adapter=adapter,
        )
        self._session.trust_env = False  # No proxy, no .netrc: only what the operator entered.

    def _rest_request(self, *arguments: Any, **options: Any) -> Any:
        return super()._rest_request(*arguments, **{**options, "allow_redirects": False})


class VerifiedTls(HTTPAdapter):
    """Trusts what the source says and nothing else, whatever the library asks for."""

    def __init__(self, source: RedfishSource) -> None:
        self.until = 0.0
        """When the request that is under way must have its whole answer."""
        self._context = _context(source)
        self._fingerprint = source.fingerprint or None
        super().__init__(max_retries=0)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(
            *arguments,
            **options,
            ssl_context=self._context,
            assert_fingerprint=self._fingerprint,
        )

    def build_connection_pool_key_attributes(
        self, request: PreparedRequest, verify: Any, cert: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        host, _tls = super().build_connection_pool_key_attributes(request, True, cert)
        return host, {}

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Nothing to add: the pool has its context already."""

    def send(self, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:
        # The library's own wish would be to read it all, however long that takes.
        response = super().send(request, *arguments, **{**options, "stream": True})
        try:
            response._content = self._body(response.raw)
        except BaseException:
            response.close()
            raise
        response._content_consumed = True
        return response

    def _body(self, raw: Any) -> bytes:
        body = bytearray()
        while chunk := raw.read1(65536, decode_content=True):
            body += chunk
            if len(body) > MOST_BYTES:
                raise SourceError(STRANGE)
            if time.monotonic() > self.until:
                raise SourceError(SLOW)
        raw.release_conn()
        return bytes(body)


def _context(source: RedfishSource) -> ssl.SSLContext:
    if source.fingerprint:  # Then this very certificate is asked for, whoever signed it.
        pinned = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        pinned.check_hostname = False
        pinned.verify_mode = ssl.CERT_NONE
        return pinned
    try:
        return ssl.create_default_context(cadata=source.ca or None)
    except (ssl.SSLError, ValueError) as error:
        raise SourceError(NO_CA) from error


def address_of(url: str) -> str:
    """`https://host[:port]`: a path, a user or another scheme would lead elsewhere."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise SourceError(NO_ADDRESS) from error
    plain = not (parts.username or parts.password or parts.query or parts.fragment)
    if parts.scheme != "https" or not parts.hostname or not plain or parts.path not in ("", "/"):
        raise SourceError(NO_ADDRESS)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"https://{host}:{port}" if port else f"https://{host}"


def path_of(document: dict[str, Any], name: str) -> str:
    """The path that a resource links to. What does not begin with a slash would change the host."""
    link = document.get(name)
    target = link.get("@odata.id") if isinstance(link, dict) else None
    return target if isinstance(target, str) and target.startswith("/") else ""


def _document(answer: Any) -> dict[str, Any]:
    try:
        document = answer.dict
    except JsonDecodingError as error:
        raise SourceError(STRANGE) from error
    if not isinstance(document, dict):
        raise SourceError(STRANGE)
    return document


def said(error: BaseException) -> SourceError:
    """The sentence for the first cause that has one."""
    for cause in _causes(error):
        if isinstance(cause, SourceError):
            return cause
        if reason := _reason(cause):
            return SourceError(reason)
    return SourceError(BROKEN)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Innermost first."""
    cause = error.__cause__ or error.__context__
    if cause is not None:
        yield from _causes(cause)
    yield error


def _reason(cause: BaseException) -> str:
    match cause:
        case ssl.SSLCertVerificationError():
            return UNTRUSTED
        case wire.SSLError() if "Fingerprints did not match" in str(cause):
            return UNTRUSTED
        case ssl.SSLError() | wire.SSLError():
            return NO_TLS
        case wire.NewConnectionError() | wire.NameResolutionError():  # A timeout by its class.
            return UNREACHABLE
        case TimeoutError() | wire.TimeoutError() | http.Timeout():
            return SLOW
    return ""
