"""What a document may declare, part by part, in the order in which it is made so."""

from collections.abc import Callable, Iterator

from dashboard.declaring.changes import Change, Looking
from dashboard.declaring.parts import deployments, nodes, panel, teams, templates

Part = Callable[[Looking], Iterator[Change]]

PARTS: tuple[Part, ...] = (
    panel.changes,
    nodes.changes,
    templates.changes,
    deployments.changes,
    teams.changes,
)
