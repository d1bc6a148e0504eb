"""What a data sheet says of a box that nothing reads."""

from django import forms
from django.utils.translation import gettext_lazy

from dashboard.forms.sources.base import Section, SourceForm
from dashboard.forms.sources.sound import PlacedForm, level_field, position_field
from monitoring.sources import DeclaredNoise, DeclaredPower


class DeclaredNoiseForm(PlacedForm):
    kind = "declared-noise"
    struct = DeclaredNoise
    sections = (
        Section(
            gettext_lazy("The data sheet"),
            (("name", "position"), ("level_dba",)),
            note=gettext_lazy(
                "A sound pressure level in dB(A) at a distance (ISO 7779), not a sound power. It "
                "is shown as declared, and gives way to anything that is measured."
            ),
        ),
    )

    position = position_field()
    level_dba = level_field(gettext_lazy("Level, dB(A)"))


class DeclaredPowerForm(SourceForm):
    kind = "declared-power"
    struct = DeclaredPower
    sections = (
        Section(
            gettext_lazy("The data sheet"),
            (("name", "watts"),),
            note=gettext_lazy(
                "The whole box's rated draw. It is shown as declared, and gives way to anything "
                "that is measured; no energy is counted from it."
            ),
        ),
    )

    watts = forms.FloatField(label=gettext_lazy("Watts"), min_value=1, max_value=100_000)
