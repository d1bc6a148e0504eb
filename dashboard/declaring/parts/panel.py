"""The panel's own settings."""

from collections.abc import Iterator
from functools import partial

from dashboard import panel_settings
from dashboard.choices import RevisionOrigin
from dashboard.configuration.panel import PANEL
from dashboard.declaring.changes import Change, Looking, differing
from dashboard.lifecycle import settings


def changes(look: Looking) -> Iterator[Change]:
    told = look.document.part("panel")
    if told is None:
        return
    with look.at(("panel",)):
        checked = settings.check_panel_values({**PANEL.defaults, **told})
        found = differing(PANEL, "panel", "Tandem", panel_settings.kept(), checked)
        if found:
            make = partial(settings.change_panel, checked, origin=RevisionOrigin.FILE)
            yield Change(("panel",), found, make)
