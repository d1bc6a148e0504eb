"""What every page's frame needs: where one can go, and where one is."""

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dashboard.access import may
from dashboard.choices import Role

PLACES: tuple[tuple[str, str, str | Promise], ...] = (
    ("overview", "overview", _("Overview")),
    ("chat", "chat", _("Playground")),
    ("deployments", "deployment", _("Deployments")),
    ("models", "model", _("Models")),
    ("nodes", "node", _("Nodes")),
    ("firmware", "firmware", _("Firmware")),
    ("monitor", "monitor", _("Monitor")),
    ("settings", "settings", _("Settings")),
)


@dataclass(frozen=True)
class Place:
    url: str
    icon: str
    label: str | Promise
    current: bool


def _place(name: str, icon: str, label: str | Promise, path: str) -> Place:
    url = reverse(name)
    current = path == url if url == "/" else path.startswith(url)
    return Place(url, icon, label, current)


def frame(request: HttpRequest) -> dict[str, object]:
    user = getattr(request, "user", None)
    talks = user is not None and may(user, Role.MEMBER)
    places = [place for place in PLACES if talks or place[0] != "chat"]
    return {
        "navigation": [_place(*place, request.path) for place in places],
        "may_talk": talks,
        "may_administer": user is not None and may(user, Role.ADMIN),
        "tandem_version": settings.VERSION,
    }
