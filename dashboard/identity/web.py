"""Questions to an identity provider: TLS always verified, one deadline, redirects refused."""

import ssl
import time
from typing import Any
from urllib.parse import urlsplit

import requests
from django.utils.translation import gettext_noop as _
from requests.adapters import HTTPAdapter

from dashboard.identity.errors import ProviderError
from dashboard.sentences import Sentence

SECONDS = 8.0
"""For the whole of one question."""
MOST_BYTES = 1_000_000
LOOPBACK = ("127.0.0.1", "localhost", "::1")

NOT_SAFE = _("%(url)s is not encrypted. A provider is asked over https only.")
SILENT = _("%(host)s did not answer within %(seconds)s s.")
UNREACHABLE = _("%(host)s cannot be reached: %(why)s.")
UNTRUSTED = _(
    "The certificate of %(host)s is not trusted: %(why)s. If an authority of your own has signed "
    "it, enter that authority’s certificate."
)
MOVED = _("%(host)s answers %(status)s and sends elsewhere. Enter the address that it sends to.")
TOO_LONG = _("%(host)s answers with more than %(size)s bytes.")
NOT_A_CERTIFICATE = _("This is no certificate in PEM form.")


class _Pinned(HTTPAdapter):
    """Trusts the authorities of the system, and one that an administrator has entered."""

    def __init__(self, ca: str) -> None:
        self._context = context_of(ca)
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs, ssl_context=self._context)


def context_of(ca: str) -> ssl.SSLContext:
    """Raises ProviderError for what is no certificate."""
    context = ssl.create_default_context()
    if ca.strip():
        try:
            context.load_verify_locations(cadata=ca)
        except (ssl.SSLError, ValueError) as error:
            raise ProviderError(Sentence(NOT_A_CERTIFICATE)) from error
    return context


def check_address(url: str) -> None:
    """Raises ProviderError."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK)):
        raise ProviderError(Sentence(NOT_SAFE, url=url[:200]))


class Session(requests.Session):
    """What allauth asks the provider with; every failure is a ProviderError."""

    def __init__(self, ca: str) -> None:
        super().__init__()
        self.trust_env = False
        self.mount("https://", _Pinned(ca))

    def request(  # type: ignore[override]
        self, method: str, url: str, **options: Any
    ) -> requests.Response:
        check_address(url)
        host = urlsplit(url).netloc.rpartition("@")[2]
        until = time.monotonic() + SECONDS
        options |= {"timeout": SECONDS, "allow_redirects": False, "stream": True}
        try:
            answer = super().request(method, url, **options)
            with answer:
                _read(answer, host, until)
        except requests.exceptions.SSLError as error:
            raise ProviderError(Sentence(UNTRUSTED, host=host, why=_reason(error))) from error
        except requests.exceptions.Timeout as error:
            raise _late(host) from error
        except requests.RequestException as error:
            raise ProviderError(Sentence(UNREACHABLE, host=host, why=_reason(error))) from error
        answer.headers.setdefault("content-type", "application/json")
        if answer.is_redirect:
            raise ProviderError(Sentence(MOVED, host=host, status=answer.status_code))
        return answer


def _read(answer: requests.Response, host: str, until: float) -> None:
    content = bytearray()
    for piece in answer.iter_content(16_384):
        content += piece
        if len(content) > MOST_BYTES:
            raise ProviderError(Sentence(TOO_LONG, host=host, size=MOST_BYTES))
        if time.monotonic() > until:
            raise _late(host)
    answer._content = bytes(content)


def _late(host: str) -> ProviderError:
    return ProviderError(Sentence(SILENT, host=host, seconds=round(SECONDS)))


def _reason(error: BaseException) -> str:
    """The innermost cause, without the library's own wrapping."""
    seen: BaseException = error
    while True:
        inner = getattr(seen, "reason", None) or next(
            (part for part in seen.args if isinstance(part, BaseException)), None
        )
        if not isinstance(inner, BaseException) or inner is seen:
            break
        seen = inner
    if isinstance(seen, ssl.SSLCertVerificationError):
        return seen.verify_message
    text = getattr(seen, "strerror", None) or str(seen) or type(seen).__name__
    return str(text).rpartition(">: ")[2][:200].rstrip(".")
