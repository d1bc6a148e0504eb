"""What is in effect now, as a document that `apply` takes."""

from typing import Any

import yaml

from dashboard import panel_settings, teams
from dashboard.configuration.declared import Catalogue, Value, Values
from dashboard.configuration.engine import ENGINE
from dashboard.configuration.node import NODE
from dashboard.configuration.panel import PANEL
from dashboard.declaring.reading import FORM
from dashboard.lifecycle import revisions
from dashboard.models import Deployment, Node, SettingsTemplate, Team
from monitoring.scopes import NOTHING, Hidden


def export(hidden: Hidden = NOTHING) -> str:
    """Without secrets, which stand in it by name, and without what is hidden."""
    document: dict[str, Any] = {"tandem": FORM, "panel": _told(PANEL, panel_settings.kept())}
    document["nodes"] = {
        node.name: _told(NODE, node.settings)
        for node in Node.objects.exclude(pk__in=hidden.nodes)
        if not node.simulated
    }
    document["templates"] = {
        row.name: {"note": row.note, "settings": row.values}
        for row in SettingsTemplate.objects.all()
    }
    rows = Deployment.objects.exclude(pk__in=hidden.deployments).select_related("model")
    document["deployments"] = {row.name: _deployment(row) for row in rows}
    if not hidden:
        document["teams"] = {row.name: teams.told(row) for row in Team.objects.all()}
    return str(yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True))


class _Dumper(yaml.SafeDumper):
    """A document has no references, which `load` refuses."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _deployment(row: Deployment) -> dict[str, Any]:
    return {
        "model": row.model.name,
        "run": row.wanted,
        "settings": _told(ENGINE, row.settings),
        "fallback": revisions.content_of(row)["fallback"],
    }


def _told(catalogue: Catalogue, values: Values) -> dict[str, Value]:
    """What differs from the defaults."""
    complete = catalogue.complete(values)
    return {one.name: complete[one.name] for one in catalogue if complete[one.name] != one.default}
