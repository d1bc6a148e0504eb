"""A BMC: where it is, whom it knows, and how its certificate is trusted."""

import re
import ssl
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.forms.sources.base import Section, SourceForm, printable, secret_field, text_input
from monitoring.sources import RedfishSource

TRUST = (
    ("system", gettext_lazy("By an authority that the node's system knows")),
    ("ca", gettext_lazy("By the authority below")),
    ("pin", gettext_lazy("By its own fingerprint below")),
)
AUTH = (
    ("session", gettext_lazy("Sign in once (session)")),
    ("basic", gettext_lazy("Send it with each request (basic)")),
)
FINGERPRINT = re.compile(r"[0-9a-f]{64}")


class RedfishForm(SourceForm):
    kind = "redfish"
    struct = RedfishSource
    place = ("url",)
    sections = (
        Section(
            gettext_lazy("The BMC"),
            (("name", "url"), ("username", "password"), ("auth", "seconds")),
            note=gettext_lazy(
                "A user with the right to read is enough. The node asks, so the address must be "
                "reachable from it."
            ),
        ),
        Section(
            gettext_lazy("Its certificate"),
            (("trust",), ("ca",), ("fingerprint",)),
            note=gettext_lazy(
                "It is checked before the password is sent. Most BMCs sign their own certificate: "
                "then take its fingerprint, which openssl shows."
            ),
        ),
    )

    url = forms.CharField(
        label=gettext_lazy("Address"),
        max_length=300,
        widget=text_input("https://10.0.0.9"),
        help_text=gettext_lazy("https://, a host and perhaps a port; nothing else."),
    )
    username = forms.CharField(
        label=gettext_lazy("User name"), max_length=100, widget=text_input("monitor")
    )
    password = secret_field(gettext_lazy("Password"))
    auth = forms.ChoiceField(label=gettext_lazy("How the password is used"), choices=AUTH)
    seconds = forms.FloatField(
        label=gettext_lazy("Read every"),
        min_value=2,
        max_value=300,
        initial=5,
        help_text=gettext_lazy("Seconds. BMCs are slow: 5 is a good pace."),
    )
    trust = forms.ChoiceField(label=gettext_lazy("It is trusted"), choices=TRUST)
    ca = forms.CharField(
        label=gettext_lazy("Certificate of the authority"),
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "-----BEGIN CERTIFICATE-----"}),
        help_text=gettext_lazy("PEM."),
    )
    fingerprint = forms.CharField(
        label=gettext_lazy("Fingerprint"),
        required=False,
        max_length=120,
        widget=text_input("AB:CD:…"),
        help_text=gettext_lazy(
            "SHA-256 of the BMC's own certificate: openssl s_client -connect HOST:443 </dev/null | "
            "openssl x509 -noout -fingerprint -sha256"
        ),
    )

    def written(self, settings: Any) -> dict[str, Any]:
        trust = "pin" if settings.get("fingerprint") else "ca" if settings.get("ca") else "system"
        return {**settings, "trust": trust}

    def clean_url(self) -> str:
        """As the node will use it; a longer address would lead elsewhere."""
        url = printable(str(self.cleaned_data["url"]).strip())
        refusal = _("Write it as https://host or https://host:port, without a path or a user name.")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise forms.ValidationError(refusal) from error
        extra = parts.username or parts.password or parts.query or parts.fragment
        whole = parts.scheme == "https" and parts.hostname and parts.path in ("", "/")
        if not whole or extra or re.search(r"\s", url):
            raise forms.ValidationError(refusal)
        host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
        return f"https://{host}:{port}" if port else f"https://{host}"

    def clean_fingerprint(self) -> str:
        """Of openssl's form, only the digits."""
        told = str(self.cleaned_data["fingerprint"]).rsplit("=", 1)[-1]
        return re.sub(r"[\s:]", "", told).lower()

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if not cleaned.get("password") and "password" not in self.errors:
            self.missing("password")
        trust = cleaned.get("trust")
        if trust != "ca":
            cleaned["ca"] = ""
        elif not _readable(cleaned.get("ca", "")):
            self.add_error("ca", _("This is no certificate in PEM form."))
        if trust != "pin":
            cleaned["fingerprint"] = ""
        elif not FINGERPRINT.fullmatch(cleaned.get("fingerprint", "")):
            self.add_error(
                "fingerprint", _("A SHA-256 fingerprint has 64 digits from 0 to 9 and A to F.")
            )
        return cleaned


def _readable(pem: str) -> bool:
    try:
        ssl.create_default_context(cadata=pem or "none")
    except (ssl.SSLError, ValueError):
        return False
    return True
