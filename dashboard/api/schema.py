"""Declared settings as JSON Schema, and the API's own description made from it."""

from collections.abc import Mapping
from typing import Any

from dashboard.configuration.declared import Catalogue, Setting
from dashboard.configuration.engine import ENGINE
from dashboard.configuration.node import NODE
from dashboard.configuration.panel import PANEL

CATALOGUES: Mapping[str, Catalogue] = {"engine": ENGINE, "node": NODE, "panel": PANEL}
TYPES = {"whole": "integer", "number": "number", "flag": "boolean", "choice": "", "text": "string"}


def schema_of(setting: Setting) -> dict[str, Any]:
    """JSON Schema 2020-12, with what else is declared under `x-`."""
    found: dict[str, Any] = {"title": str(setting.label), "default": setting.default}
    if TYPES[setting.kind]:
        kind = TYPES[setting.kind]
        found["type"] = [kind, "null"] if setting.optional else kind
    if setting.kind == "choice":
        values: list[Any] = [value for value, _label in setting.choices]
        found["enum"] = [*values, None] if setting.optional else values
    told = {
        "description": str(setting.help),
        "minimum": setting.low,
        "maximum": setting.high,
        "pattern": f"^(?:{setting.pattern})$" if setting.pattern else "",
        "x-unit": str(setting.unit),
        "x-absent": str(setting.absent),
        "x-applies": setting.applies,
        "x-drivers": list(setting.drivers),
        "x-group": setting.group,
    }
    return found | {name: value for name, value in told.items() if value not in ("", None, [])}


def catalogue_schema(catalogue: Catalogue) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {setting.name: schema_of(setting) for setting in catalogue},
    }


def openapi(version: str) -> dict[str, Any]:
    """OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tandem", "version": version},
        "security": [{"key": []}],
        "paths": {
            "/api/v1/deployments/{name}/settings": _settings_path("engine", named=True),
            "/api/v1/deployments/{name}/revisions": {"get": _reads("Revision", named=True)},
            "/api/v1/deployments/{name}/revisions/{number}/back": {
                "post": _reads("Revision", named=True, numbered=True)
            },
            "/api/v1/nodes/{name}/settings": _settings_path("node", named=True),
            "/api/v1/panel/settings": _settings_path("panel", named=False),
            "/api/v1/settings/{catalogue}": {"get": _catalogue_path()},
        },
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                **{name: catalogue_schema(one) for name, one in CATALOGUES.items()},
                "Revision": {"type": "object"},
                "Error": {
                    "type": "object",
                    "properties": {
                        "error": {
                            "type": "object",
                            "properties": {
                                "message": {"type": "string"},
                                "fields": {
                                    "type": "object",
                                    "additionalProperties": {"type": "string"},
                                },
                            },
                        }
                    },
                },
            },
        },
    }


def _settings_path(catalogue: str, *, named: bool) -> dict[str, Any]:
    change = {
        "type": "object",
        "properties": {
            "settings": {"$ref": f"#/components/schemas/{catalogue}"},
            "why": {"type": "string", "maxLength": 300},
        },
    }
    dry = {
        "name": "dry_run",
        "in": "query",
        "description": "Answer what would change, and change nothing.",
        "schema": {"type": "string", "enum": ["1"]},
    }
    patch = _operation(catalogue, [*_parameters(named=named), dry])
    patch["requestBody"] = {"required": True, "content": _json(change)}
    return {"get": _operation(catalogue, _parameters(named=named)), "patch": patch}


def _reads(schema: str, *, named: bool, numbered: bool = False) -> dict[str, Any]:
    return _operation(schema, _parameters(named=named, numbered=numbered))


def _catalogue_path() -> dict[str, Any]:
    choice = {
        "name": "catalogue",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "enum": list(CATALOGUES)},
    }
    return _operation("Revision", [choice])


def _operation(schema: str, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    refused = {"description": "Refused", "content": _json({"$ref": "#/components/schemas/Error"})}
    answer = {"description": "Done", "content": _json({"$ref": f"#/components/schemas/{schema}"})}
    refusals = dict.fromkeys(("400", "401", "403", "404", "409", "422"), refused)
    return {"parameters": parameters, "responses": {"200": answer, **refusals}}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _parameters(*, named: bool, numbered: bool = False) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if named:
        found.append(_path("name", {"type": "string"}))
    if numbered:
        found.append(_path("number", {"type": "integer"}))
    return found


def _path(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": schema}
