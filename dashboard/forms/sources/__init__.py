"""One form a kind of source."""

from dashboard.forms.sources.base import Section, SourceForm
from dashboard.forms.sources.declared import DeclaredNoiseForm, DeclaredPowerForm
from dashboard.forms.sources.pdu import PduForm
from dashboard.forms.sources.redfish import RedfishForm
from dashboard.forms.sources.sound import FanLawForm, MeterForm, MicrophoneForm

FORMS: dict[str, type[SourceForm]] = {
    form.kind: form
    for form in (
        RedfishForm,
        PduForm,
        MeterForm,
        MicrophoneForm,
        FanLawForm,
        DeclaredNoiseForm,
        DeclaredPowerForm,
    )
}

__all__ = ["FORMS", "Section", "SourceForm"]
