"""Sources of a node's readings: what the operator enters reaches the agent at once."""

import logging

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.errors import StatusConflict
from dashboard.lifecycle.firmware import READ_TASK
from dashboard.lifecycle.record import record
from dashboard.models import Node
from dashboard.sentences import Sentence
from monitoring.models import NodeSource, SourceKind
from monitoring.sources import Source
from monitoring.vault import SealError

log = logging.getLogger(__name__)

TAKEN = _("%(node)s has a source named %(source)s already.")


def sources_for(node: Node) -> list[Source]:
    """Those that can be used; one whose secrets cannot be read any more is left out."""
    found: list[Source] = []
    for row in node.sources.all():
        try:
            found.append(row.source)
        except SealError:
            log.warning("Source %s of node %s is sealed with another secret key.", row, node)
    return found


def save_source(row: NodeSource, source: Source, by: object) -> None:
    """Add it, or change what it is. Raises StatusConflict when its name is taken."""
    added = row.pk is None
    row.take(source)
    try:
        with transaction.atomic():
            row.save()
            said = (
                _("Source %(source)s was added by %(by)s.")
                if added
                else _("Source %(source)s was changed by %(by)s.")
            )
            _tell(row, Sentence(said, source=row.name, by=str(by)))
    except IntegrityError as error:
        raise StatusConflict(Sentence(TAKEN, node=row.node.name, source=row.name)) from error


@transaction.atomic
def remove_source(row: NodeSource, by: object) -> None:
    """What it has told stays stored."""
    row.delete()
    _tell(row, Sentence(_("Source %(source)s was removed by %(by)s."), source=row.name, by=str(by)))


def _tell(row: NodeSource, sentence: Sentence) -> None:
    Node.objects.filter(pk=row.node_id).update(desired_generation=F("desired_generation") + 1)
    record(sentence, node=row.node)
    outbox.nudge(row.node_id)
    if row.kind == SourceKind.REDFISH:
        outbox.task(READ_TASK, row.node_id)
