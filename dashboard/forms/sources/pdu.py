"""Metered outlets: where the PDU is, which outlets feed the node, and how it is asked."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.forms.nodes import is_address
from dashboard.forms.sources.base import Section, SourceForm, printable, secret_field, text_input
from monitoring.sources import PduSource

PROFILES = (
    ("apc", gettext_lazy("APC (rPDU2)")),
    ("raritan", gettext_lazy("Raritan, Server Technology (PDU2)")),
    ("custom", gettext_lazy("Another, by its object identifiers")),
)
VERSIONS = (("2c", gettext_lazy("2c: a community")), ("3", gettext_lazy("3: a user and keys")))
AUTHENTICATION = (
    ("", gettext_lazy("none")),
    ("sha", "SHA-1"),
    ("sha256", "SHA-256"),
    ("sha512", "SHA-512"),
    ("md5", "MD5"),
)
PRIVACY = (
    ("", gettext_lazy("none")),
    ("aes128", "AES-128"),
    ("aes256", "AES-256"),
    ("des", "DES"),
)
OID = re.compile(r"\.?\d+(\.(\d+|\{outlet\}))+")
MOST_OUTLETS = 48
SHORTEST_KEY = 8


class PduForm(SourceForm):
    kind = "pdu"
    struct = PduSource
    place = ("host", "port")
    sections = (
        Section(
            gettext_lazy("The PDU"),
            (("name", "profile"), ("host", "port"), ("outlets", "seconds")),
            note=gettext_lazy(
                "What the outlets feed is added up. A box on two PDUs gets two sources; their sum "
                "is what it draws."
            ),
        ),
        Section(gettext_lazy("How it is asked"), (("version", "community"),)),
        Section(
            gettext_lazy("SNMP version 3"),
            (("user",), ("auth_protocol", "auth_key"), ("privacy_protocol", "privacy_key")),
            folded=True,
        ),
        Section(
            gettext_lazy("Object identifiers of another PDU"),
            (("power_oid", "power_factor"), ("energy_oid", "energy_factor")),
            note=gettext_lazy("{outlet} stands for the outlet's number."),
            folded=True,
        ),
    )

    profile = forms.ChoiceField(label=gettext_lazy("Make"), choices=PROFILES)
    host = forms.CharField(
        label=gettext_lazy("Address"), max_length=253, widget=text_input("10.0.0.8")
    )
    port = forms.IntegerField(label=gettext_lazy("Port"), min_value=1, max_value=65535, initial=161)
    outlets = forms.CharField(
        label=gettext_lazy("Outlets"),
        required=False,
        max_length=200,
        widget=text_input("3, 4"),
        help_text=gettext_lazy("Those that feed this node; empty for the whole PDU."),
    )
    seconds = forms.FloatField(
        label=gettext_lazy("Read every"),
        min_value=1,
        max_value=300,
        initial=2,
        help_text=gettext_lazy("Seconds."),
    )
    version = forms.ChoiceField(label=gettext_lazy("SNMP version"), choices=VERSIONS)
    community = secret_field(
        gettext_lazy("Community"), gettext_lazy("It travels in the clear; version 3 does not.")
    )
    user = forms.CharField(
        label=gettext_lazy("User name"), required=False, max_length=32, widget=text_input()
    )
    auth_protocol = forms.ChoiceField(
        label=gettext_lazy("Authentication"), choices=AUTHENTICATION, required=False
    )
    auth_key = secret_field(gettext_lazy("Authentication key"))
    privacy_protocol = forms.ChoiceField(
        label=gettext_lazy("Privacy"), choices=PRIVACY, required=False
    )
    privacy_key = secret_field(gettext_lazy("Privacy key"))
    power_oid = forms.CharField(
        label=gettext_lazy("Power"), required=False, max_length=200, widget=text_input()
    )
    power_factor = forms.FloatField(
        label=gettext_lazy("Watts for one unit"), required=False, initial=1
    )
    energy_oid = forms.CharField(
        label=gettext_lazy("Energy"), required=False, max_length=200, widget=text_input()
    )
    energy_factor = forms.FloatField(
        label=gettext_lazy("Joules for one unit"),
        required=False,
        initial=1,
        help_text=gettext_lazy("A kilowatt-hour is 3,600,000."),
    )

    def written(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        assert self.row is not None
        keyed = settings.get("user")
        return {
            **settings,
            "outlets": ", ".join(str(outlet) for outlet in settings.get("outlets", ())),
            "version": "3" if keyed else "2c",
            "auth_protocol": settings.get("auth_protocol") if keyed else "",
            "privacy_protocol": settings.get("privacy_protocol") if keyed else "",
        }

    def clean_host(self) -> str:
        host = printable(str(self.cleaned_data["host"]).strip())
        if not is_address(host):
            raise forms.ValidationError(
                _("This is neither an IP address nor a host name: no port, no http:// before it.")
            )
        return host

    def clean_outlets(self) -> tuple[int, ...]:
        told = [part for part in re.split(r"[,;\s]+", self.cleaned_data["outlets"]) if part]
        if not all(part.isascii() and part.isdigit() and 1 <= int(part) <= 999 for part in told):
            raise forms.ValidationError(_("Write the outlets' numbers with commas between: 3, 4."))
        if len(told) > MOST_OUTLETS:
            raise forms.ValidationError(_("These are more outlets than one box has plugs."))
        return tuple(dict.fromkeys(int(part) for part in told))

    def clean_power_oid(self) -> str:
        return self._oid("power_oid")

    def clean_energy_oid(self) -> str:
        return self._oid("energy_oid")

    def _oid(self, name: str) -> str:
        oid = str(self.cleaned_data[name]).strip()
        if oid and not OID.fullmatch(oid):
            raise forms.ValidationError(
                _("An object identifier is numbers with points between, such as 1.3.6.1.4.1.318.")
            )
        return oid

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if cleaned.get("version") == "3":
            self._clean_v3(cleaned)
        else:
            cleaned |= {"user": "", "auth_key": "", "privacy_key": ""}
            if not cleaned.get("community") and "community" not in self.errors:
                self.missing("community")
        for name in ("power_factor", "energy_factor"):
            if cleaned.get(name) is None and name not in self.errors:
                cleaned[name] = 1.0
            elif not cleaned.get(name, 1.0) > 0:
                self.add_error(name, _("It must be more than 0."))
        if cleaned.get("profile") == "custom" and not cleaned.get("power_oid"):
            self.add_error("power_oid", _("Say where the PDU keeps its power."))
        return cleaned

    def _clean_v3(self, cleaned: dict[str, Any]) -> None:
        cleaned["community"] = ""
        if not cleaned.get("user"):
            self.add_error("user", _("Version 3 needs a user name."))
        if cleaned.get("privacy_protocol") and not cleaned.get("auth_protocol"):
            self.add_error("auth_protocol", _("Privacy needs authentication as well."))
        for protocol, key in (("auth_protocol", "auth_key"), ("privacy_protocol", "privacy_key")):
            if not cleaned.get(protocol):
                cleaned[key] = ""
            elif not cleaned.get(key):
                self.missing(key)
            elif len(cleaned[key]) < SHORTEST_KEY:
                self.add_error(key, _("A key has at least eight characters."))

    def content(self) -> dict[str, Any]:
        content = super().content()
        defaults = {"auth_protocol": "sha", "privacy_protocol": "aes128"}
        return content | {k: v for k, v in defaults.items() if not content.get(k)}
