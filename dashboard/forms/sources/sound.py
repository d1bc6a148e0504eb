"""Meters, microphones and the estimate from fan speeds."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.forms.sources.base import Section, SourceForm, printable, text_input
from monitoring.sources import (
    HID_DEVICE,
    SERIAL_DEVICE,
    FanLawSource,
    MeterSource,
    MicrophoneSource,
)

LEAST, MOST = 10.0, 160.0
POSITION_HELP = gettext_lazy(
    "Where it is heard, such as “1 m” or “desk”: levels of different places are never mixed."
)
PROTOCOLS = (
    ("text", gettext_lazy("Lines of text (serial)")),
    ("hid-gm1356", gettext_lazy("USB (GM1356 and its like)")),
)
GRADES = (
    ("class 1", gettext_lazy("Class 1 (± 1.1 dB)")),
    ("class 2", gettext_lazy("Class 2 (± 1.4 dB)")),
    ("unknown", gettext_lazy("Not known (± 3 dB)")),
)
BAUDS = [(rate, str(rate)) for rate in (1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200)]


def position_field() -> forms.CharField:
    return forms.CharField(
        label=gettext_lazy("Position"),
        max_length=40,
        initial="1 m",
        widget=text_input(),
        help_text=POSITION_HELP,
    )


def level_field(label: Any, **options: Any) -> forms.FloatField:
    return forms.FloatField(label=label, min_value=LEAST, max_value=MOST, **options)


class PlacedForm(SourceForm):
    def clean_position(self) -> str:
        return printable(str(self.cleaned_data["position"]))


class MeterForm(PlacedForm):
    kind = "meter"
    struct = MeterSource
    sections = (
        Section(
            gettext_lazy("The meter"),
            (("name", "position"), ("protocol", "device"), ("baud", "grade")),
            note=gettext_lazy(
                "Set it to A-weighting. The device is one of the node's; its agent must be allowed "
                "to open it."
            ),
        ),
    )

    position = position_field()
    protocol = forms.ChoiceField(label=gettext_lazy("How it talks"), choices=PROTOCOLS)
    device = forms.CharField(
        label=gettext_lazy("Device"),
        max_length=200,
        widget=text_input("/dev/ttyUSB0"),
        help_text=gettext_lazy(
            "/dev/ttyUSB0 or socket://host:port for lines of text, hid:64bd:74e3 for USB."
        ),
    )
    baud = forms.TypedChoiceField(
        label=gettext_lazy("Baud"), choices=BAUDS, coerce=int, initial=9600
    )
    grade = forms.ChoiceField(
        label=gettext_lazy("Class"),
        choices=GRADES,
        initial="class 2",
        help_text=gettext_lazy("IEC 61672: what it may be wrong by."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        device = cleaned.get("device", "")
        if not device:
            return cleaned
        if cleaned.get("protocol") == "text" and not SERIAL_DEVICE.fullmatch(device):
            self.add_error("device", _("Write /dev/…, or socket://host:port."))
        elif cleaned.get("protocol") == "hid-gm1356" and not HID_DEVICE.fullmatch(device):
            self.add_error(
                "device", _("Write hid: with the vendor's and the product's number: hid:64bd:74e3.")
            )
        return cleaned


class MicrophoneForm(PlacedForm):
    kind = "microphone"
    struct = MicrophoneSource
    sections = (
        Section(
            gettext_lazy("The microphone"),
            (("name", "position"), ("device",), ("offset_db", "calibrated")),
            note=gettext_lazy(
                "One level a second is kept and the sound is forgotten at once. Save it, then "
                "calibrate it on its page with a sound level meter beside it."
            ),
        ),
    )

    position = position_field()
    device = forms.CharField(
        label=gettext_lazy("Device"),
        required=False,
        max_length=100,
        widget=text_input(),
        help_text=gettext_lazy("A part of its name; empty for the one that the system offers."),
    )
    offset_db = forms.FloatField(
        label=gettext_lazy("Calibration, dB"),
        required=False,
        min_value=0,
        max_value=220,
        help_text=gettext_lazy("The level of full scale. Empty: not calibrated yet."),
    )
    calibrated = forms.CharField(
        label=gettext_lazy("Calibrated on"),
        required=False,
        max_length=20,
        widget=text_input("2026-11-30"),
    )


class FanLawForm(PlacedForm):
    kind = "fan-law"
    struct = FanLawSource
    sections = (
        Section(
            gettext_lazy("The estimate"),
            (
                ("name", "position"),
                ("level_dba", "rpm"),
                ("exponent", "band_db"),
                ("calibrated",),
            ),
            note=gettext_lazy(
                "Fans are about 15 dB louder at twice their speed. One level at a known speed ties "
                "that to this box: leave both empty, save, and calibrate with a meter. It stays an "
                "estimate, and is drawn as one."
            ),
        ),
    )

    position = position_field()
    level_dba = level_field(gettext_lazy("Level, dB(A)"), required=False)
    rpm = forms.FloatField(
        label=gettext_lazy("at, rpm"), required=False, min_value=100, max_value=60_000
    )
    exponent = forms.FloatField(
        label=gettext_lazy("Exponent"),
        min_value=30,
        max_value=70,
        initial=50,
        help_text=gettext_lazy("50 for most fans; from 45 to 60 has been measured."),
    )
    band_db = forms.FloatField(
        label=gettext_lazy("Band, ± dB"),
        min_value=1,
        max_value=20,
        initial=5,
        help_text=gettext_lazy("How far off it may be; 5 unless you know better."),
    )
    calibrated = forms.CharField(
        label=gettext_lazy("Calibrated on"),
        required=False,
        max_length=20,
        widget=text_input("2026-11-30"),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if (cleaned.get("level_dba") is None) != (cleaned.get("rpm") is None):
            lacking = "rpm" if cleaned.get("rpm") is None else "level_dba"
            if lacking not in self.errors:
                self.add_error(lacking, _("A level and its speed belong together."))
        return cleaned
