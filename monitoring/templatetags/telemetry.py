"""Charts on a page."""

from typing import Any

from django import template

from monitoring.charts import panel

register = template.Library()


@register.simple_tag
def telemetry_panel(scope: str) -> dict[str, Any]:
    return panel(scope)
