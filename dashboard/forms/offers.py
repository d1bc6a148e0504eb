"""What settings may be on this fleet: secrets that are stored, addresses that a node has."""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from dashboard.configuration.declared import Catalogue
from dashboard.forms.declared import Choices
from dashboard.models import Node, Secret


def secret_choices(catalogue: Catalogue) -> dict[str, Choices]:
    stored = [(name, name) for name in Secret.objects.values_list("name", flat=True)]
    return {one.name: stored for one in catalogue if one.secret}


def node_choices(node: Node) -> Mapping[str, Choices]:
    """Addresses from its inventory; nothing is offered while its agent has told none."""
    hardware = node.hardware
    if hardware is None or not hardware.interfaces:
        return {}
    addresses = [(one.address, f"{one.address} · {one.name}") for one in hardware.interfaces]
    cards = list(dict.fromkeys(one.name for one in hardware.interfaces))
    return {
        "engine_address": addresses,
        "cable_address": [("none", _("none")), *addresses],
        "nccl_interface": [(name, name) for name in cards],
    }
