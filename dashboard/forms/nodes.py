"""Adding a node."""

from typing import TYPE_CHECKING

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard.models import Node

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
