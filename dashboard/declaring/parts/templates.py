"""Templates of engine settings."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.utils.translation import gettext_noop as _

from dashboard import settings_templates
from dashboard.audit import Actor
from dashboard.configuration.engine import ENGINE
from dashboard.declaring.changes import GONE, THERE, Change, Difference, Looking, differing
from dashboard.models import SettingsTemplate

FIELDS = ("note", "settings")


def changes(look: Looking) -> Iterator[Change]:
    known = {row.name: row for row in SettingsTemplate.objects.all()}
    for name, told in look.things("templates", FIELDS):
        path = ("templates", name)
        note, values = told.get("note", ""), told.get("settings")
        if not isinstance(note, str):
            look.refuse((*path, "note"), _("this must be a text."))
        elif look.is_mapping((*path, "settings"), values):
            with look.at(path, _place):
                checked = settings_templates.check(name, values or {})
                found = _differing(known.get(name), name, note, checked)
                if found:
                    yield Change(path, found, partial(_keep, name, note, checked))
    if look.prune and look.document.part("templates") is not None:
        yield from _pruned(look, known)


def _place(setting: str) -> tuple[str, ...]:
    return ("settings", setting) if setting in ENGINE else ()


def _keep(name: str, note: str, values: dict[str, Any], actor: Actor, why: str = "") -> None:
    settings_templates.keep(name, note, values, actor)


def _remove(row: SettingsTemplate, actor: Actor, why: str = "") -> None:
    settings_templates.remove(row, actor)


def _pruned(look: Looking, known: dict[str, SettingsTemplate]) -> Iterator[Change]:
    for name, row in known.items():
        if name not in (look.document.part("templates") or {}):
            gone = [Difference("template", name, "", THERE, GONE)]
            yield Change(("templates",), gone, partial(_remove, row))


def _differing(
    row: SettingsTemplate | None, name: str, note: str, values: dict[str, Any]
) -> list[Difference]:
    if row is None:
        return [Difference("template", name, "", GONE, THERE)]
    found = differing(ENGINE, "template", name, row.values, values)
    if row.note != note:
        found.append(Difference("template", name, "note", row.note or GONE, note or GONE))
    return found
