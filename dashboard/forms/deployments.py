"""A new deployment, refused at the field when its plan cannot work."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.configuration.checks import check_engine
from dashboard.configuration.declared import Group
from dashboard.configuration.engine import ENGINE
from dashboard.forms.names import PLAIN_NAME
from dashboard.forms.settings import setting_fields, values_of
from dashboard.lifecycle.revisions import fleet_abilities
from dashboard.models import Deployment

if TYPE_CHECKING:
    _DeploymentForm = forms.ModelForm[Deployment]
else:
    _DeploymentForm = forms.ModelForm


class DeploymentForm(_DeploymentForm):
    class Meta:
        model = Deployment
        fields = ["model", "name"]
        widgets = {
            "name": forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
        }
        error_messages = {
            "name": {
                "unique": gettext_lazy("Another deployment has this name; choose a different one."),
                "invalid": PLAIN_NAME,
            }
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.update(setting_fields(ENGINE.of(self.instance.driver)))
        for name, value in ENGINE.complete(self.instance.settings).items():
            self.initial.setdefault(name, value)

    @property
    def groups(self) -> list[tuple[Group, list[forms.BoundField]]]:
        """The settings' fields as the page shows them."""
        known = ENGINE.of(self.instance.driver)
        return [
            (group, [self[one.name] for one in known if one.group == group.name])
            for group in ENGINE.groups.values()
        ]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name == "new":
            raise forms.ValidationError(_("This name is taken by the panel itself."))
        return name

    def _post_clean(self) -> None:
        """After the model's own validators: a plan is arithmetic, and wants sane numbers."""
        super()._post_clean()  # type: ignore[misc]  # django-stubs leave out this hook
        if self.errors:
            return
        self.instance.settings = dict(values_of(self))
        shape = self.cleaned_data["model"].shape
        _checked, problems = check_engine(self.instance.settings, shape, fleet_abilities())
        for problem in problems:
            self.add_error(problem.name or None, str(problem.sentence))
