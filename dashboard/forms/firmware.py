"""Forms about firmware: images, bundles, vendor keys, tested sets."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard.choices import Component
from dashboard.firmware.errors import ImageRefused
from dashboard.firmware.images import SHA256, About, patterns, sha256_text
from dashboard.firmware.signatures import MOST_SIGNATURE_BYTES, load_key
from dashboard.models import FirmwareKey

MOST_PATTERNS = 50
PLAIN = {"autocomplete": "off", "spellcheck": "false"}
REVERSIBLE = (
    ("", _("Not said by the vendor")),
    ("yes", _("Yes, an older version can be put back")),
    ("no", _("No, there is no way back")),
)
UPDATED = tuple(
    (value, label)
    for value, label in Component.choices
    if value not in (Component.KERNEL, Component.DRIVER)
)
"""What images are for; drivers and kernels are packages of the system."""


class Sha256Field(forms.CharField):
    def __init__(self) -> None:
        super().__init__(
            label=_("SHA-256"),
            max_length=300,
            widget=forms.TextInput(attrs={**PLAIN, "class": "mono", "placeholder": "9f86d081…"}),
            help_text=_("As the vendor publishes it, copied from there and not from the file."),
        )

    def clean(self, value: Any) -> str:
        text = sha256_text(super().clean(value))
        if not SHA256.fullmatch(text):
            raise forms.ValidationError(_("A SHA-256 has 64 hexadecimal digits."))
        return text


class ArrivedForm(forms.Form):
    """A file that `IntoTheStore` has taken in."""

    file = forms.FileField(label=_("File"), allow_empty_file=True, max_length=200)

    def clean_file(self) -> Any:
        arrived = self.cleaned_data["file"]
        if arrived.refused is not None:
            raise forms.ValidationError(str(arrived.refused))
        return arrived


class BundleForm(ArrivedForm):
    sha256 = Sha256Field()


class ImageForm(ArrivedForm):
    sha256 = Sha256Field()
    signed = forms.ChoiceField(
        label=_("Vendor signature"),
        choices=(
            ("yes", _("The vendor signs it; the signature is below")),
            ("no", _("The vendor gives none")),
        ),
        help_text=_("Without one, only the SHA-256 says that it is what the vendor published."),
    )
    signature = forms.FileField(
        label=_("Signature file"),
        required=False,
        help_text=_("Detached: bare, base64 or CMS (PKCS #7), by a key under Vendor keys."),
    )
    component = forms.ChoiceField(label=_("Component"), choices=UPDATED)
    fits = forms.CharField(
        label=_("Fits"),
        max_length=4000,
        widget=forms.Textarea(attrs={**PLAIN, "rows": 3, "placeholder": "HGX_FW_BMC_*"}),
        help_text=_(
            "Names or models of parts as the inventory shows them, one a line; * stands for "
            "anything. It is offered for nothing else."
        ),
    )
    vendor = forms.CharField(
        label=_("Vendor"), max_length=80, required=False, widget=forms.TextInput(attrs=PLAIN)
    )
    version = forms.CharField(
        label=_("Version"),
        max_length=80,
        required=False,
        widget=forms.TextInput(attrs=PLAIN),
        help_text=_(
            "As the device will tell it afterwards: an update counts only if it does. Of a PLDM "
            "package (.fwpkg) it is read from the file where this is empty."
        ),
    )
    reversible = forms.ChoiceField(label=_("Way back"), choices=REVERSIBLE, required=False)
    notes = forms.CharField(
        label=_("Notes"), max_length=4000, required=False, widget=forms.Textarea(attrs={"rows": 3})
    )

    def clean_fits(self) -> list[str]:
        found = patterns(self.cleaned_data["fits"])
        if not found or len(found) > MOST_PATTERNS:
            raise forms.ValidationError(_("Enter 1 to 50 names."))
        return found

    def clean_signature(self) -> bytes | None:
        file = self.cleaned_data["signature"]
        return file.read(MOST_SIGNATURE_BYTES + 1) if file else None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("signed") == "yes" and not cleaned.get("signature"):
            self.add_error("signature", _("Choose the signature file, or say that there is none."))
        if cleaned.get("signed") == "no":
            cleaned["signature"] = None
        return cleaned

    @property
    def about(self) -> About:
        cleaned = self.cleaned_data
        return About(
            name=cleaned["file"].name or "",
            component=cleaned["component"],
            fits=cleaned["fits"],
            version=cleaned["version"],
            vendor=cleaned["vendor"],
            reversible={"yes": True, "no": False}.get(cleaned["reversible"]),
            notes=cleaned["notes"],
        )


class KeyForm(forms.ModelForm):  # type: ignore[type-arg]  # Generic in its stubs alone
    class Meta:
        model = FirmwareKey
        fields = ("name", "vendor", "pem")
        widgets = {
            "name": forms.TextInput(attrs=PLAIN),
            "vendor": forms.TextInput(attrs=PLAIN),
            "pem": forms.Textarea(
                attrs={**PLAIN, "rows": 8, "placeholder": "-----BEGIN PUBLIC KEY-----"}
            ),
        }
        help_texts = {
            "pem": _(
                "Ed25519, ECDSA, or RSA with at least 2048 bits. A certificate that may sign "
                "others vouches for those too. Compare its fingerprint with the vendor's."
            ),
        }

    def clean_pem(self) -> str:
        pem: str = self.cleaned_data["pem"].strip() + "\n"
        try:
            load_key(pem)
        except ImageRefused as refused:
            raise forms.ValidationError(str(refused)) from refused
        return pem


class SetForm(forms.Form):
    name = forms.CharField(
        label=_("Name"), max_length=80, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    node: Any = forms.ModelChoiceField(
        None, label=_("Versions of"), to_field_name="name", empty_label=None
    )
    notes = forms.CharField(
        label=_("Notes"), max_length=2000, required=False, widget=forms.Textarea(attrs={"rows": 2})
    )

    def __init__(self, nodes: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        field: Any = self.fields["node"]
        field.queryset = nodes
