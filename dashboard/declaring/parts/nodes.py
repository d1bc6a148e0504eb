"""Settings of nodes. Nodes come and go by their token alone, never by a document."""

from collections.abc import Iterator
from functools import partial

from django.utils.translation import gettext_noop as _

from dashboard.choices import RevisionOrigin
from dashboard.configuration.node import NODE
from dashboard.declaring.changes import Change, Looking, differing
from dashboard.lifecycle import settings
from dashboard.models import Node

MISSING = _("There is no node %(name)s; add it on the nodes page, which gives it its token.")


def changes(look: Looking) -> Iterator[Change]:
    known = {node.name: node for node in Node.objects.all()}
    for name, told in look.things("nodes"):
        path = ("nodes", name)
        if name not in known:
            look.refuse(path, MISSING, name=name)
            continue
        with look.at(path):
            node = known[name]
            checked = settings.check_node(node, {**NODE.defaults, **told})
            found = differing(NODE, "node", name, node.settings, checked)
            if found:
                make = partial(settings.change_node, node, checked, origin=RevisionOrigin.FILE)
                yield Change(path, found, make)
