"""Where images lie, and the one-use addresses under which they are fetched."""

import secrets
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard.firmware.errors import ImageRefused
from dashboard.models import FirmwareFetch, FirmwareImage, NodeUpdate
from dashboard.models.fleet import hash_token
from dashboard.panel_settings import current
from dashboard.sentences import Sentence

LASTS = timedelta(hours=2)
"""How long an address is good: longer than the slowest BMC fetches."""

NO_ADDRESS = _(
    "The panel does not know the address at which a BMC reaches it; set TANDEM_PUBLIC_URL."
)
NOT_HERE = _(
    "The file of %(image)s is not in the panel's store; upload it, or let fwupd on the node fetch "
    "it."
)


def folder() -> Path:
    """Private, and made when it is needed."""
    path: Path = settings.STATE_DIR / "firmware"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def path_of(image: FirmwareImage) -> Path:
    return folder() / image.sha256


def is_here(image: FirmwareImage) -> bool:
    """False for one of LVFS that nodes fetch by themselves."""
    return path_of(image).is_file()


def one_use_url(image: FirmwareImage, update: NodeUpdate | None) -> str:
    """For a BMC: on our own host, good once. Raises ImageRefused where none can be made."""
    base = settings.PUBLIC_URL or current().get("public_url")
    if not base:
        raise ImageRefused(NO_ADDRESS)
    return str(base).rstrip("/") + _path(image, update, by_agent=False)


def one_use_path(image: FirmwareImage, update: NodeUpdate | None) -> str:
    """For an agent, which knows the panel's address and adds its own token."""
    return _path(image, update, by_agent=True)


def _path(image: FirmwareImage, update: NodeUpdate | None, *, by_agent: bool) -> str:
    if not is_here(image):
        raise ImageRefused(Sentence(NOT_HERE, image=str(image)))
    token = secrets.token_urlsafe(32)
    FirmwareFetch.objects.create(
        token_hash=hash_token(token),
        image=image,
        update=update,
        by_agent=by_agent,
        expires_at=timezone.now() + LASTS,
    )
    return reverse("firmware-fetch", args=[token, plain_name(image.name)])


def plain_name(name: str) -> str:
    """Of a file, without what a path, a header or an address could trip over."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-+") else "_" for c in name)
    return kept.lstrip(".")[:120] or "image"
