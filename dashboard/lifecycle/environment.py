"""What engine processes on a node find in their environment, from its settings."""

import logging

from dashboard.configuration.node import variables
from dashboard.models import Node
from dashboard.secrets import SecretError, reveal

log = logging.getLogger(__name__)


def environment_for(node: Node) -> dict[str, str]:
    """Secrets are revealed here, for the agent alone; one that cannot be is left out."""
    found: dict[str, str] = {}
    for name, (setting, value) in variables(node.settings).items():
        if not setting.secret:
            found[name] = "1" if value is True else str(value)
            continue
        try:
            found[name] = reveal(str(value))
        except SecretError as error:
            log.warning("%s: %s is not passed to engines: %s", node.name, name, error)
    return found
