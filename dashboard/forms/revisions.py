"""The settings of a deployment that exists: what `lifecycle.revisions.propose` takes."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext_lazy as _

from dashboard.configuration.declared import Values
from dashboard.configuration.engine import ENGINE
from dashboard.forms.declared import SettingsForm
from dashboard.forms.fallback import FallbackForm
from dashboard.models import Deployment, Model
from dashboard.sentences import Sentence

FALLBACK = "fallback."


class ModelForm(forms.Form):
    """Which model it serves."""

    model = forms.ModelChoiceField(Model.objects.none(), label=_("Model"), empty_label=None)

    def __init__(self, deployment: Deployment, data: QueryDict | None = None) -> None:
        super().__init__(data, initial={"model": deployment.model_id})
        field = self.fields["model"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Model.objects.all()


class RevisionForm:
    """Model, declared settings, fallback and reason on one page."""

    def __init__(
        self, request: HttpRequest, deployment: Deployment, begun: Values, *, may_change: bool
    ) -> None:
        """`begun`: the settings to begin with."""
        data = request.POST if request.method == "POST" else None
        self.model = ModelForm(deployment, data)
        known = ENGINE.known_to(deployment.driver)
        self.settings = SettingsForm(known, begun, data, may_change=may_change)
        self.fallback = FallbackForm(data, instance=deployment.fallback_or_none)
        for form in (self.model, self.fallback):
            for field in form.fields.values():
                field.disabled = not may_change

    def is_valid(self) -> bool:
        return all([self.model.is_valid(), self.settings.is_valid(), self.fallback.is_valid()])

    @property
    def values(self) -> dict[str, Any]:
        return self.settings.entered

    @property
    def content(self) -> dict[str, Any]:
        model = self.model.cleaned_data["model"]
        return {"model": model.name, "fallback": self.fallback.content}

    @property
    def why(self) -> str:
        return str(self.settings.cleaned_data["why"])

    def refuse(self, errors: Mapping[str, Sentence]) -> None:
        """Each sentence at the field that can mend it."""
        theirs = {name: sentence for name, sentence in errors.items() if name.startswith(FALLBACK)}
        for name, sentence in theirs.items():
            field = name.removeprefix(FALLBACK)
            self.fallback.add_error(field, str(sentence))
        if "model" in errors:
            self.model.add_error("model", str(errors["model"]))
        rest = {name: one for name, one in errors.items() if name not in (*theirs, "model")}
        self.settings.refuse(rest)
