"""Adding a node."""

import ipaddress
import re
from typing import TYPE_CHECKING

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard.forms.names import PLAIN_NAME
from dashboard.models import Node

HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*\.?")

if TYPE_CHECKING:
    _NodeForm = forms.ModelForm[Node]
else:
    _NodeForm = forms.ModelForm


class NodeForm(_NodeForm):
    class Meta:
        model = Node
        fields = ["name", "address"]
        widgets = {
            "name": forms.TextInput(attrs={"placeholder": "box-1", "autocomplete": "off"}),
            "address": forms.TextInput(
                attrs={"placeholder": "192.168.1.21", "autocomplete": "off"}
            ),
        }
        help_texts = {"name": _("Letters, digits and hyphens; shown everywhere.")}
        error_messages = {
            "name": {
                "unique": _("There is a node of this name already."),
                "invalid": PLAIN_NAME,
            }
        }

    def clean_address(self) -> str:
        address: str = self.cleaned_data["address"]
        if not is_address(address):
            raise forms.ValidationError(
                _("This is neither an IP address nor a host name: no port, no http:// before it.")
            )
        return address


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        # Digits and dots alone were meant as an IP address.
        return bool(HOST_NAME.fullmatch(text)) and not re.fullmatch(r"[\d.]+", text)
    return True
