"""Which addresses a message may be sent to.

Whoever runs the panel may well receive messages on the same machine or network, so loopback and
private addresses are allowed. Link-local ones are not: on many clouds they hand out credentials.
"""

import ipaddress
import socket
import threading
from urllib.parse import urlsplit

from django.utils.translation import gettext_noop as _

from monitoring.alerts.notify.errors import UndeliverableError

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address

METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
)
"""Where clouds answer questions about a machine, its credentials among them."""

NOT_A_URL = _("This is no http:// or https:// address with a host name.")
CREDENTIALS = _("Put no user name or password into the address; use the secret instead.")
FORBIDDEN = _("%(host)s leads to %(address)s, to which nothing is sent.")
UNKNOWN_HOST = _("No address was found for the host name %(host)s.")
SLOW_NAME = _("The host name %(host)s was not resolved within %(seconds)s s.")


def check_url(url: str) -> tuple[str, str, int]:
    """Scheme, host and port; raises UndeliverableError."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UndeliverableError(NOT_A_URL, final=True) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or _blank(url):
        raise UndeliverableError(NOT_A_URL, final=True)
    if parts.username is not None or parts.password is not None:
        raise UndeliverableError(CREDENTIALS, final=True)
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80)


def resolve(host: str, port: int, seconds: float) -> list[str]:
    """Addresses that may be connected to. All that the name has must be allowed, and a connection
    goes to one that was checked: the name cannot mean something else a moment later."""
    addresses = _look_up(host, port, seconds)
    for text in addresses:
        if not allowed(ipaddress.ip_address(text.partition("%")[0])):
            raise UndeliverableError(FORBIDDEN, final=True, host=host, address=text)
    return addresses


def allowed(address: Ip) -> bool:
    address = _unwrapped(address)
    if address in METADATA:
        return False
    return not (address.is_link_local or address.is_multicast or address.is_unspecified)


def _unwrapped(address: Ip) -> Ip:
    """The IPv4 address that an IPv6 one stands for."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in ipaddress.ip_network("64:ff9b::/96"):
            return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        return address.ipv4_mapped or address.sixtofour or address
    return address


def _look_up(host: str, port: int, seconds: float) -> list[str]:
    """The system's resolver knows no deadline, so it works in a thread that may be left behind."""
    found: list[str] = []
    failed: list[OSError | UnicodeError] = []

    def ask() -> None:
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            failed.append(error)
            return
        found.extend(dict.fromkeys(str(answer[4][0]) for answer in answers))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise UndeliverableError(UNKNOWN_HOST, host=host) from failed[0]
    if not found:
        raise UndeliverableError(SLOW_NAME, host=host, seconds=round(seconds))
    return list(found)


def _blank(url: str) -> bool:
    return any(character.isspace() or ord(character) < 32 for character in url)
