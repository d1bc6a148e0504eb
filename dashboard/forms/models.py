"""Taking a model file into the catalogue."""

from django import forms
from django.core.validators import validate_slug
from django.utils.translation import gettext_lazy as _

from dashboard.forms.names import PLAIN_NAME


class ImportForm(forms.Form):
    path = forms.CharField(
        label=_("Path to a GGUF file or a Hugging Face folder"),
        max_length=1024,
        help_text=_(
            "On this machine, and at the same path on every node that will run it. Of a split GGUF "
            "file the first part."
        ),
        widget=forms.TextInput(
            attrs={
                "placeholder": "/srv/models/smollm2-135m-instruct.gguf",
                "spellcheck": "false",
                "autocomplete": "off",
            }
        ),
    )
    name = forms.CharField(
        label=_("Name"),
        max_length=80,
        required=False,
        validators=[validate_slug],
        error_messages={"invalid": PLAIN_NAME},
        help_text=_("Optional. Left empty, the name comes from the file."),
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
    )
