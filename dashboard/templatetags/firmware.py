"""What pages about firmware draw."""

from typing import cast

from django import template
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from dashboard.choices import Component
from dashboard.views.firmware.urls import TABS

register = template.Library()


@register.inclusion_tag("firmware/_tabs.html", takes_context=True)
def firmware_tabs(context: dict[str, object]) -> dict[str, object]:
    """The pages under Firmware; the one that is shown is marked."""
    request = cast(HttpRequest, context["request"])
    first = reverse(TABS[0][0])
    tabs = []
    for name, label in TABS:
        try:
            url = reverse(name)
        except NoReverseMatch:
            continue
        below = url != first and request.path.startswith(url)
        box = url == first and request.path.startswith(f"{first}nodes/")
        tabs.append({"url": url, "label": label, "current": request.path == url or below or box})
    return {"tabs": tabs}


@register.filter
def component_name(value: str) -> str:
    """Of a component as sets keep it."""
    return str(dict(Component.choices).get(value, value))
