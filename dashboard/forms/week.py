"""Fields for hours of the week, the same on every form that has them."""

from functools import cache
from zoneinfo import available_timezones

from django import forms
from django.utils.translation import gettext_lazy as _

DAYS = (
    (0, _("Mon")),
    (1, _("Tue")),
    (2, _("Wed")),
    (3, _("Thu")),
    (4, _("Fri")),
    (5, _("Sat")),
    (6, _("Sun")),
)
MIDNIGHT = _("Ends before it begins: it runs on into the next day. The same time: a whole day.")


class DaysField(forms.TypedMultipleChoiceField):
    """Checked days as numbers, 0 for Monday."""

    def __init__(self) -> None:
        super().__init__(
            label=_("Days"),
            choices=DAYS,
            coerce=int,
            initial=[day for day, _label in DAYS],
            widget=forms.CheckboxSelectMultiple,
            error_messages={"required": _("Choose at least one day.")},
        )


class ClockInput(forms.TimeInput):
    input_type = "time"

    def __init__(self) -> None:
        super().__init__(format="%H:%M")


class DateInput(forms.DateInput):
    input_type = "date"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%d")


@cache
def zones() -> list[tuple[str, str]]:
    """What the system knows, the common names first."""
    names = sorted(available_timezones())
    regions = [name for name in names if "/" in name and not name.startswith(("Etc/", "posix/"))]
    return [(name, name.replace("_", " ")) for name in ["UTC", *regions]]


class ZoneField(forms.ChoiceField):
    def __init__(self) -> None:
        super().__init__(label=_("Time zone"), choices=zones)
