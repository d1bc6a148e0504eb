"""How the administration looks and what its sidebar lists; colours follow `static/app.css`."""

from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


def _logo(request: HttpRequest) -> str:
    return static("favicon.svg")


def _item(title: str | Promise, icon: str, model: str) -> dict[str, object]:
    return {"title": title, "icon": icon, "link": reverse_lazy(f"admin:{model}_changelist")}


PRIMARY = {
    "50": "#eef2fd",
    "100": "#e0e8fb",
    "200": "#c6d3f8",
    "300": "#a1b7f2",
    "400": "#8fabff",
    "500": "#4f72e1",
    "600": "#2f57d6",
    "700": "#2446b3",
    "800": "#213c91",
    "900": "#203674",
    "950": "#162149",
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Tandem",
    "SITE_HEADER": "Tandem",
    "SITE_SUBHEADER": _("Administration"),
    "SITE_URL": "/",
    "SITE_ICON": {"light": _logo, "dark": _logo},
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _logo}],
    "SHOW_LANGUAGES": True,
    "LANGUAGES": {"action": reverse_lazy("set_language")},
    "SHOW_BACK_BUTTON": True,
    "COLORS": {"primary": PRIMARY},
    "SIDEBAR": {
        "navigation": [
            {
                "items": [
                    {
                        "title": _("Back to the panel"),
                        "icon": "arrow_back",
                        "link": reverse_lazy("overview"),
                    }
                ]
            },
            {
                "title": _("Fleet"),
                "separator": True,
                "items": [
                    _item(_("Deployments"), "layers", "dashboard_deployment"),
                    _item(_("Launches"), "rocket_launch", "dashboard_replica"),
                    _item(_("Models"), "deployed_code", "dashboard_model"),
                    _item(_("Nodes"), "dns", "dashboard_node"),
                ],
            },
            {
                "title": _("History"),
                "separator": True,
                "items": [
                    _item(_("Events"), "history", "dashboard_event"),
                    _item(_("Jobs"), "checklist", "dashboard_job"),
                ],
            },
            {
                "title": _("Access"),
                "separator": True,
                "items": [
                    _item(_("Users"), "person", "auth_user"),
                    _item(_("Groups"), "group", "auth_group"),
                    _item(_("API keys"), "key", "dashboard_apikey"),
                    _item(_("Conversations"), "forum", "dashboard_conversation"),
                ],
            },
        ],
    },
}
