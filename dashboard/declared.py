"""The configuration as one document: read strictly, compared with what is, applied in one go.

```yaml
tandem: 1
panel: {language: en}
nodes: {node-a: {memory_floor_mb: 2048}}
deployments:
  smollm2: {model: smollm2-135m-instruct, run: true, settings: {tp: 2}, fallback: null}
```

What a document leaves out stays as it is; within `settings` that is said by `null` or left out it
takes its default. Secrets stand in it by name alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from django.db import transaction
from django.utils.translation import gettext_noop as _

from dashboard import lifecycle, panel_settings
from dashboard.audit import Actor
from dashboard.choices import DeploymentStatus, RevisionOrigin
from dashboard.configuration.declared import SettingsRefused, Value
from dashboard.configuration.engine import ENGINE
from dashboard.configuration.node import NODE
from dashboard.configuration.panel import PANEL
from dashboard.errors import StatusConflict, TandemError
from dashboard.lifecycle import revisions
from dashboard.lifecycle import settings as settings_of
from dashboard.models import Deployment, Model, Node
from dashboard.sentences import Sentence
from monitoring.scopes import NOTHING, Hidden

FORM = 1
TOP = ("tandem", "panel", "nodes", "deployments")
DEPLOYMENT = ("model", "run", "settings", "fallback")
MOST_BYTES = 1 << 20


class DocumentRefused(TandemError):
    """Something in the document is wrong; the sentence says where and what. Nothing was changed."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not as the document has it."""

    kind: str
    """`panel`, `node` or `deployment`."""
    name: str
    setting: str
    now: str
    wanted: str


class _Loader(yaml.SafeLoader):
    """Also refuses a key that stands twice in one mapping."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise _refused(key_node, _("a name must be a text, not %(name)s."), name=str(key)[:60])
        if key in seen:
            raise _refused(key_node, _("%(name)s stands here a second time."), name=key[:60])
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _refused(node: yaml.Node, words: str, **parts: str) -> DocumentRefused:
    line = node.start_mark.line + 1 if node.start_mark else 0
    return DocumentRefused(
        Sentence(_("Line %(line)s: %(why)s"), line=line, why=Sentence(words, **parts))
    )


def load(text: str) -> dict[str, Any]:
    """Raises DocumentRefused with the line."""
    if len(text.encode()) > MOST_BYTES:
        raise DocumentRefused(Sentence(_("The document is larger than 1 MB.")))
    try:
        found = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        raise DocumentRefused(
            Sentence(_("Line %(line)s: %(why)s"), line=line, why=str(error.problem))
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise DocumentRefused(Sentence(_("This is not YAML: %(why)s"), why=str(error))) from error
    if not isinstance(found, dict) or found.get("tandem") != FORM:
        raise DocumentRefused(Sentence(_("The document must begin with “tandem: 1”.")))
    _only(found, TOP, "")
    for name in TOP[1:]:
        _is_mapping(found.get(name), name)
    return found


def export(hidden: Hidden = NOTHING) -> str:
    """What is in effect now, as a document that `apply` takes."""
    document: dict[str, Any] = {"tandem": FORM, "panel": _told(PANEL, panel_settings.kept())}
    document["nodes"] = {
        node.name: _told(NODE, node.settings)
        for node in Node.objects.exclude(pk__in=hidden.nodes)
        if not node.simulated
    }
    document["deployments"] = {
        row.name: {
            "model": row.model.name,
            "run": row.wanted,
            "settings": _told(ENGINE, row.settings),
            "fallback": revisions.content_of(row)["fallback"],
        }
        for row in Deployment.objects.exclude(pk__in=hidden.deployments).select_related("model")
    }
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


def _told(catalogue: Any, values: Mapping[str, Value]) -> dict[str, Value]:
    """What differs from the defaults."""
    complete = catalogue.complete(values)
    return {one.name: complete[one.name] for one in catalogue if complete[one.name] != one.default}


def differences(document: Mapping[str, Any]) -> list[Difference]:
    """Everything is checked here before anything is changed. Raises DocumentRefused."""
    found = _panel(document.get("panel"))
    for name, values in (document.get("nodes") or {}).items():
        found += _node(name, values)
    for name, told in (document.get("deployments") or {}).items():
        found += _deployment(name, told)
    return found


def _panel(values: Any) -> list[Difference]:
    if values is None:
        return []
    with _at("panel"):
        checked = settings_of.check_panel_values({**PANEL.defaults, **values})
    return _differing(PANEL, "panel", "Tandem", panel_settings.kept(), checked)


def _node(name: str, values: Any) -> list[Difference]:
    _is_mapping(values, f"nodes.{name}")
    node = Node.objects.filter(name=name).first()
    if node is None:
        words = _("There is no node %(name)s; add it on the nodes page, which gives it its token.")
        raise DocumentRefused(Sentence(words, name=name))
    with _at(f"nodes.{name}"):
        checked = settings_of.check_node(node, {**NODE.defaults, **(values or {})})
    return _differing(NODE, "node", name, node.settings, checked)


def _deployment(name: str, told: Any) -> list[Difference]:
    where = f"deployments.{name}"
    _is_mapping(told, where)
    _only(told, DEPLOYMENT, where)
    _is_mapping(told.get("settings"), f"{where}.settings")
    if not isinstance(told.get("run", True), bool):
        raise _odd(f"{where}.run", _("this is either true or false."))
    row = Deployment.objects.select_related("model").filter(name=name).first()
    values, content = _wanted(row, told)
    with _at(where):
        checked = revisions.check(row or Deployment(name=name), values, content)
    if row is None:
        return [Difference("deployment", name, "", "–", str(content["model"]))]
    found = _differing(ENGINE, "deployment", name, row.settings, checked)
    before = revisions.content_of(row)
    found += [
        Difference("deployment", name, part, str(before[part]), str(content[part]))
        for part in ("model", "fallback")
        if before[part] != content[part]
    ]
    if "run" in told and told["run"] != row.wanted:
        found.append(Difference("deployment", name, "run", str(row.wanted), str(told["run"])))
    return found


def _wanted(
    row: Deployment | None, told: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    content = revisions.content_of(row) if row is not None else {"model": "", "fallback": None}
    content |= {part: told[part] for part in ("model", "fallback") if part in told}
    if "settings" not in told and row is not None:
        return dict(ENGINE.complete(row.settings)), content
    return {**ENGINE.defaults, **(told.get("settings") or {})}, content


def apply(document: Mapping[str, Any], actor: Actor) -> list[Difference]:
    """Make it so; answers what was changed. A deployment that runs changes by its own job.

    Raises DocumentRefused before anything is changed.
    """
    found = differences(document)
    changed = {(one.kind, one.name) for one in found}
    origin, why = RevisionOrigin.FILE, "manage.py apply"
    with transaction.atomic():
        if ("panel", "Tandem") in changed:
            wanted = {**PANEL.defaults, **document["panel"]}
            settings_of.change_panel(wanted, actor, why=why, origin=origin)
        for name, values in (document.get("nodes") or {}).items():
            if ("node", name) in changed:
                node = Node.objects.get(name=name)
                wanted = {**NODE.defaults, **(values or {})}
                settings_of.change_node(node, wanted, actor, why=why, origin=origin)
        for name, told in (document.get("deployments") or {}).items():
            if ("deployment", name) in changed:
                with _at(f"deployments.{name}"):
                    _apply_deployment(name, told, actor)
    return found


def _apply_deployment(name: str, told: Mapping[str, Any], actor: Actor) -> None:
    row = Deployment.objects.select_related("model").filter(name=name).first()
    values, content = _wanted(row, told)
    if row is None:
        model = Model.objects.get(name=content["model"])
        row = Deployment.objects.create(name=name, model=model, settings=values)
    revision = revisions.propose(
        row, values, content, actor=actor, why="manage.py apply", origin=RevisionOrigin.FILE
    )
    if revision.pk != revisions.current(row).pk and revision.state == "proposed":
        revisions.apply(revision, actor)
    row.refresh_from_db()
    stopped = row.status in (DeploymentStatus.STOPPED, DeploymentStatus.FAILED)
    if told.get("run") is True and stopped:
        lifecycle.request_deploy(row, actor)
    elif told.get("run") is False and row.wanted:
        lifecycle.request_stop(row, actor)


def _differing(
    catalogue: Any, kind: str, name: str, before: Mapping[str, Value], after: Mapping[str, Value]
) -> list[Difference]:
    return [
        Difference(kind, name, setting.name, setting.shown(old), setting.shown(new))
        for setting, old, new in catalogue.changes(before, after)
    ]


class _at:
    """Refusals inside name the place in the document."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, SettingsRefused):
            name, sentence = next(iter(error.errors.items()))
            raise _odd(f"{self.where}.{name}", "%(why)s", why=sentence) from error
        if isinstance(error, StatusConflict):
            raise _odd(self.where, "%(why)s", why=error.sentence) from error


def _odd(where: str, words: str, **parts: Sentence | str) -> DocumentRefused:
    return DocumentRefused(Sentence("%(at)s: %(why)s", at=where, why=Sentence(words, **parts)))


def _only(found: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in found:
        if name not in known:
            place = f"{where}.{name}".strip(".")
            raise _odd(
                place, _("there is no such entry; known are %(known)s."), known=", ".join(known)
            )


def _is_mapping(value: Any, where: str) -> None:
    if value is not None and not isinstance(value, dict):
        raise _odd(where, _("names with values are expected here."))
