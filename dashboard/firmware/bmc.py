"""A node's BMC, as the operator entered it among the node's sources."""

from django.utils.translation import gettext_noop as _

from dashboard.firmware.errors import BmcError
from dashboard.models import Node
from dashboard.sentences import Sentence
from monitoring.models import SourceKind
from monitoring.sources import RedfishSource
from monitoring.vault import SealError

SEALED = _(
    "The password of %(node)s's BMC was sealed with another secret key; enter it again among the "
    "node's sources."
)


def bmc_of(node: Node) -> RedfishSource | None:
    """With its password; None where no BMC was entered. Raises BmcError when the password cannot
    be read any more."""
    row = node.sources.filter(kind=SourceKind.REDFISH).order_by("pk").first()
    if row is None:
        return None
    try:
        source = row.source
    except SealError as error:
        raise BmcError(Sentence(SEALED, node=node.name)) from error
    assert isinstance(source, RedfishSource)
    return source
