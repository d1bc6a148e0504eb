"""Declared settings as JSON Schema."""

from collections.abc import Mapping
from typing import Any

from dashboard.configuration.declared import Catalogue, Setting
from dashboard.configuration.drivers import options_of
from dashboard.configuration.engine import ENGINE
from dashboard.configuration.node import NODE
from dashboard.configuration.panel import PANEL

CATALOGUES: Mapping[str, Catalogue] = {"engine": ENGINE, "node": NODE, "panel": PANEL}
TYPES = {"whole": "integer", "number": "number", "flag": "boolean", "text": "string"}


def schema_of(setting: Setting, *, engine: bool = False) -> dict[str, Any]:
    """JSON Schema 2020-12, with what else is declared under `x-`."""
    found: dict[str, Any] = {"title": str(setting.label), "default": setting.default}
    if setting.kind == "choice":
        values: list[Any] = [value for value, _label in setting.choices]
        found["enum"] = [*values, None] if setting.optional else values
        found["x-labels"] = {str(value): str(label) for value, label in setting.choices}
    else:
        kind = TYPES[setting.kind]
        found["type"] = [kind, "null"] if setting.optional else kind
    told = {
        "description": str(setting.help),
        "minimum": setting.low,
        "maximum": setting.high,
        "pattern": f"^(?:{setting.pattern})$" if setting.pattern else "",
        "maxLength": setting.longest if setting.kind == "text" else None,
        "examples": [setting.example] if setting.example else None,
        "x-unit": str(setting.unit),
        "x-absent": str(setting.absent),
        "x-applies": setting.applies,
        "x-secret": True if setting.secret else None,
        "x-drivers": list(setting.drivers),
        "x-options": options_of(setting.name) if engine else None,
        "x-group": setting.group,
    }
    return found | {name: value for name, value in told.items() if value not in ("", None, [], {})}


def catalogue_schema(catalogue: Catalogue) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            setting.name: schema_of(setting, engine=catalogue is ENGINE) for setting in catalogue
        },
        "x-groups": {
            group.name: {"title": str(group.label), "description": str(group.note)}
            for group in catalogue.groups.values()
        },
    }
