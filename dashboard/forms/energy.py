"""Prices, tariffs and outlays."""

import re
from typing import TYPE_CHECKING

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard.forms.week import MIDNIGHT, ClockInput, DateInput, DaysField, ZoneField
from monitoring.models import Outlay, PriceList, TariffRate

if TYPE_CHECKING:
    _PriceListForm = forms.ModelForm[PriceList]
    _TariffRateForm = forms.ModelForm[TariffRate]
    _OutlayForm = forms.ModelForm[Outlay]
else:
    _PriceListForm = _TariffRateForm = _OutlayForm = forms.ModelForm

CURRENCY = re.compile(r"[A-Z]{3}")


class PriceListForm(_PriceListForm):
    zone = ZoneField()

    class Meta:
        model = PriceList
        fields = [
            "currency",
            "zone",
            "vat_percent",
            "vat_entered",
            "vat_shown",
            "cloud_name",
            "cloud_prompt",
            "cloud_generated",
        ]
        help_texts = {
            "currency": _("Three letters, such as EUR or CNY. Sums are not converted."),
            "vat_percent": _("Per cent; 0 where there is none."),
            "cloud_name": _("The service that running is compared with, for your eyes only."),
            "cloud_prompt": _("What it takes for a million tokens that it reads."),
            "cloud_generated": _("What it takes for a million tokens that it writes."),
        }
        widgets = {
            "currency": forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
            "cloud_name": forms.TextInput(attrs={"autocomplete": "off"}),
        }

    def clean_currency(self) -> str:
        currency: str = self.cleaned_data["currency"].upper()
        if not CURRENCY.fullmatch(currency):
            raise forms.ValidationError(_("Write the currency as three letters, such as EUR."))
        return currency


class TariffRateForm(_TariffRateForm):
    days = DaysField()

    class Meta:
        model = TariffRate
        fields = ["name", "price", "since", "days", "begins", "ends"]
        widgets = {"since": DateInput(), "begins": ClockInput(), "ends": ClockInput()}
        help_texts = {
            "since": _(
                "Lines of a later date replace all earlier ones from that day on: what was drawn "
                "before keeps its price."
            ),
            "ends": MIDNIGHT,
        }


class OutlayForm(_OutlayForm):
    class Meta:
        model = Outlay
        fields = ["name", "amount", "every", "since"]
        widgets = {
            "name": forms.TextInput(attrs={"autocomplete": "off"}),
            "since": DateInput(),
        }
