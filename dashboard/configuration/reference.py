"""The reference of all settings, from their declarations."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, override

from dashboard.configuration.declared import Catalogue, Group, Setting, Words
from dashboard.configuration.engine import ENGINE
from dashboard.configuration.node import NODE
from dashboard.configuration.panel import PANEL

INTRODUCTION = """# Settings

Made by `manage.py settings_docs` from their declarations in `dashboard/configuration/`; do not edit
it by hand. The panel shows the same under Settings, All settings.
"""


@dataclass(frozen=True)
class Line:
    setting: Setting
    values: str
    """What it may be."""
    default: str
    applies: str


@dataclass(frozen=True)
class Chapter:
    title: str
    groups: list[tuple[Group, list[Line]]]


KINDS: Mapping[str, Words] = {
    "panel": gettext_lazy("Panel"),
    "node": gettext_lazy("Node"),
    "template": gettext_lazy("Template"),
    "deployment": gettext_lazy("Deployment"),
    "team": gettext_lazy("Team"),
}


def words_of(kind: str) -> Words:
    return KINDS[kind]


def label_of(kind: str, setting: str) -> str:
    """What a person calls a setting of such a thing."""
    catalogue = CATALOGUES.get(kind)
    if catalogue is not None and setting in catalogue:
        return str(catalogue[setting].label)
    return str(OTHERS.get(setting, setting))


CATALOGUES: Mapping[str, Catalogue] = {
    "panel": PANEL,
    "node": NODE,
    "template": ENGINE,
    "deployment": ENGINE,
}
OTHERS: Mapping[str, Words] = {
    "model": gettext_lazy("model"),
    "fallback": gettext_lazy("fallback"),
    "run": gettext_lazy("should run"),
    "note": gettext_lazy("what it is for"),
    "members": gettext_lazy("members"),
    "deployments": gettext_lazy("deployments"),
    "nodes": gettext_lazy("nodes"),
}


def chapters() -> list[Chapter]:
    """In the reader's language."""
    return [
        Chapter(_("Engine (of a deployment)"), _groups(ENGINE)),
        Chapter(_("Node"), _groups(NODE)),
        Chapter(_("Panel"), _groups(PANEL)),
    ]


def _groups(catalogue: Catalogue) -> list[tuple[Group, list[Line]]]:
    return [
        (group, [_line(one) for one in catalogue if one.group == group.name])
        for group in catalogue.groups.values()
    ]


def _line(setting: Setting) -> Line:
    live = setting.applies == "live"
    return Line(
        setting,
        _values(setting),
        setting.shown(setting.default),
        _("while it runs") if live else _("with a restart"),
    )


def _values(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(str(value) for value, _label in setting.choices)
    if setting.kind == "flag":
        return "true, false"
    if setting.low is not None or setting.high is not None:
        low = "" if setting.low is None else f"{setting.low:g}"
        high = "" if setting.high is None else f"{setting.high:.12g}"
        unit = f" {setting.unit}" if setting.unit else ""
        return f"{low} … {high}{unit}"
    return setting.example or _("text")


def page() -> str:
    """docs/settings.md, in English."""
    with override("en"):
        return INTRODUCTION + "".join(_chapter(one) for one in chapters())


def _chapter(chapter: Chapter) -> str:
    text = f"\n## {chapter.title}\n"
    for group, lines in chapter.groups:
        text += f"\n### {group.label}\n\n"
        text += f"{group.note}\n\n" if group.note else ""
        text += "| name | what it is | values | default | takes effect |\n|---|---|---|---|---|\n"
        for line in lines:
            one = line.setting
            words = f"{str(one.label)[:1].upper()}{str(one.label)[1:]}. {one.help}".strip()
            cells = (f"`{one.name}`", words, line.values, line.default, line.applies)
            text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    return text
