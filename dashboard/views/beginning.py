"""What the form of a deployment begins with: its own settings, a preset or a template."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.http import HttpRequest

from dashboard.configuration.declared import Value, Values, Words
from dashboard.configuration.engine import ENGINE
from dashboard.configuration.presets import PRESETS, Preset, preset
from dashboard.lifecycle.fitting import room_for
from dashboard.models import Deployment, SettingsTemplate
from dashboard.texts import storable
from dashboard.views.settings.history import Difference


@dataclass(frozen=True)
class Beginning:
    values: dict[str, Value]
    name: str = ""
    """Of the preset or template; empty for the settings as they are."""
    label: Words = ""
    note: Words = ""
    differences: list[Difference] = field(default_factory=list)
    templates: Iterable[SettingsTemplate] = ()
    presets: Iterable[Preset] = PRESETS


def beginning(request: HttpRequest, deployment: Deployment) -> Beginning:
    """As the address asks. One that is not saved yet has a model."""
    before = ENGINE.complete(deployment.settings)
    templates = list(SettingsTemplate.objects.all())
    asked = storable(request.GET.get("template", ""))
    for row in templates:
        if row.name == asked:
            values = {**ENGINE.defaults, **_still_declared(row.values)}
            shown = _differences(before, values)
            return Beginning(values, f"template:{row.name}", row.name, row.note, shown, templates)
    for one in PRESETS:
        if one.name == request.GET.get("preset"):
            values = _fitted(one, deployment, before)
            shown = _differences(before, values)
            return Beginning(values, one.name, one.label, one.note, shown, templates)
    return Beginning(before, templates=templates)


def _fitted(one: Preset, deployment: Deployment, before: Values) -> dict[str, Value]:
    shape, fits = deployment.model.shape, room_for(deployment)
    return preset(one.name, before, shape, lambda tried: fits(shape, tried))


def _still_declared(values: Values) -> dict[str, Value]:
    return {name: value for name, value in values.items() if name in ENGINE}


def _differences(before: Values, after: Values) -> list[Difference]:
    return [
        Difference(setting.label, setting.shown(old), setting.shown(new))
        for setting, old, new in ENGINE.changes(before, after)
    ]
