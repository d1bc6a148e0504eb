"""The API's own description, OpenAPI 3.1, made from the declarations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.api.schema import CATALOGUES, catalogue_schema
from dashboard.choices import RevisionOrigin, RevisionState
from dashboard.lifecycle.preview import ChangeWay

Schema = dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """One method of one address."""

    path: str
    """Below `/api/v1`."""
    method: str
    name: str
    summary: str
    answer: Schema
    body: Schema | None = None
    query: tuple[str, ...] = ()
    """Of `QUERY`."""
    role: str = "viewer"
    """The weakest that may."""


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: Mapping[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


TEXT: Schema = {"type": "string"}
NUMBER_OR_NONE: Schema = {"type": ["integer", "null"]}
ANYTHING: Schema = {}

QUERY: Mapping[str, tuple[str, Schema]] = {
    "dry_run": ("Answer what would change, and change nothing.", {"type": "boolean"}),
    "apply": ("False: keep the revision, to be applied later.", {"type": "boolean"}),
    "language": ("Of texts for people.", {"type": "string", "enum": ["en", "zh-hans"]}),
}

CHANGED = _object({"revision": {"anyOf": [_ref("Revision"), {"type": "null"}]}}, "revision")
CHANGES = _object({"changes": _list(_ref("Change"))}, "changes")
REVISIONS = _object({"revisions": _list(_ref("Revision"))}, "revisions")
APPLIED = _object(
    {"revision": _ref("Revision"), "job": NUMBER_OR_NONE, "preview": _ref("Preview")}, "job"
)


def _entry(catalogue: str, more: Mapping[str, Schema] | None = None) -> Schema:
    whole = {"settings": _ref(catalogue), "why": {"type": "string", "maxLength": 300}}
    return _object({**whole, **(more or {})})


def _settings(path: str, catalogue: str, subject: str, role: str) -> list[Operation]:
    deployment = catalogue == "engine"
    content = {"content": _ref("Content")} if deployment else {}
    now = _object({"name": TEXT, "settings": _ref(catalogue), **content}, "settings")
    answer = {"anyOf": [APPLIED, _ref("Preview")] if deployment else [CHANGED, CHANGES]}
    query = ("dry_run", "apply", "language") if deployment else ("dry_run", "language")
    body = _entry(catalogue, content)
    back = APPLIED if deployment else CHANGED
    numbered = f"{path}/revisions/{{number}}/back"
    title = subject.capitalize()
    return [
        Operation(f"{path}/settings", "get", f"read{title}", f"Settings of {subject}.", now),
        Operation(
            f"{path}/settings",
            "put",
            f"replace{title}",
            f"All settings of {subject}: what is left out takes its default.",
            answer,
            body,
            query,
            role,
        ),
        Operation(
            f"{path}/settings",
            "patch",
            f"change{title}",
            f"Some settings of {subject}: what is left out stays.",
            answer,
            body,
            query,
            role,
        ),
        Operation(
            f"{path}/revisions",
            "get",
            f"revisions{title}",
            "Who changed what and why, the newest first.",
            REVISIONS,
        ),
        Operation(
            numbered,
            "post",
            f"back{title}",
            "The settings of that revision again, as a new one.",
            back,
            role=role,
        ),
    ]


def operations() -> list[Operation]:
    name = _object({"name": TEXT, "status": TEXT}, "name", "status")
    return [
        Operation(
            "/settings/{catalogue}",
            "get",
            "readCatalogue",
            "Every declared setting as JSON Schema.",
            {"type": "object"},
            query=("language",),
        ),
        Operation(
            "/deployments",
            "get",
            "listDeployments",
            "Deployments.",
            _object({"deployments": _list(name)}, "deployments"),
        ),
        *_settings("/deployments/{name}", "engine", "deployment", "operator"),
        Operation(
            "/deployments/{name}/revisions/{number}/apply",
            "post",
            "applyRevision",
            "Apply a revision that was kept.",
            APPLIED,
            role="operator",
        ),
        Operation("/nodes", "get", "listNodes", "Nodes.", _object({"nodes": _list(name)}, "nodes")),
        *_settings("/nodes/{name}", "node", "node", "operator"),
        *_settings("/panel", "panel", "panel", "admin"),
    ]


def openapi(version: str) -> Schema:
    paths: dict[str, Schema] = {}
    for one in operations():
        paths.setdefault(one.path, {})[one.method] = _operation(one)
    catalogues = {name: catalogue_schema(one) for name, one in CATALOGUES.items()}
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Tandem",
            "version": version,
            "description": "Settings of deployments, nodes and the panel.",
        },
        "servers": [{"url": "/api/v1"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key that may change configuration; it does what its "
                    "owner may do.",
                }
            },
            "schemas": {**catalogues, **_schemas()},
        },
    }


def _schemas() -> dict[str, Schema]:
    change = {"name": TEXT, "before": ANYTHING, "after": ANYTHING, "live": {"type": "boolean"}}
    return {
        "Content": _object(
            {
                "model": TEXT,
                "fallback": {"type": ["object", "null"], "additionalProperties": True},
            }
        ),
        "Revision": _object(
            {
                "number": {"type": "integer"},
                "state": {"type": "string", "enum": list(RevisionState.values)},
                "by": TEXT,
                "at": {"type": "string", "format": "date-time"},
                "why": TEXT,
                "origin": {"type": "string", "enum": list(RevisionOrigin.values)},
                "outcome": TEXT,
                "settings": {"type": "object"},
                "content": {"type": "object"},
            },
            *("number", "state", "settings"),
        ),
        "Change": _object(change, "name", "before", "after", "live"),
        "Preview": _object(
            {
                "way": {"type": "string", "enum": [way.value for way in ChangeWay]},
                "changes": _list(_ref("Change")),
                "why": TEXT,
                "pause_seconds": {"type": ["number", "null"]},
                "basis": TEXT,
            },
            *("way", "changes"),
        ),
        "Error": _object(
            {
                "error": _object(
                    {
                        "message": TEXT,
                        "fields": {"type": "object", "additionalProperties": TEXT},
                    },
                    "message",
                )
            },
            "error",
        ),
    }


REFUSALS = {
    "400": "The request cannot be read.",
    "401": "No API key, or none that is known.",
    "403": "The key's owner may not do this.",
    "404": "There is nothing of this name, or it is another team's.",
}
REFUSED_CHANGES = {
    "409": "Somebody else's change came first, or it cannot be made now.",
    "422": "Settings that cannot be taken; `fields` has a sentence for each.",
}


def _operation(one: Operation) -> Schema:
    refusals = REFUSALS | (REFUSED_CHANGES if one.method != "get" else {})
    found: Schema = {
        "operationId": one.name,
        "summary": one.summary,
        "description": f"For the role {one.role} and stronger ones.",
        "parameters": [*_in_path(one.path), *map(_in_query, one.query)],
        "responses": {
            "200": {"description": "Done.", "content": _json(one.answer)},
            **{
                status: {"description": words, "content": _json(_ref("Error"))}
                for status, words in refusals.items()
            },
        },
    }
    if one.body is not None:
        found["requestBody"] = {"required": True, "content": _json(one.body)}
    return found


def _in_path(path: str) -> list[Schema]:
    kinds: Mapping[str, Schema] = {
        "name": TEXT,
        "number": {"type": "integer", "minimum": 1},
        "catalogue": {"type": "string", "enum": list(CATALOGUES)},
    }
    return [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name, schema in kinds.items()
        if f"{{{name}}}" in path
    ]


def _in_query(name: str) -> Schema:
    words, schema = QUERY[name]
    return {"name": name, "in": "query", "description": words, "schema": schema}


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
