"""A new deployment, refused at the field when its plan cannot work."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.configuration.declared import Group
from dashboard.configuration.engine import ENGINE
from dashboard.forms.names import PLAIN_NAME
from dashboard.forms.settings import setting_fields, values_of
from dashboard.models import Deployment, Node
from dashboard.sentences import sentence_of
from engine.abilities import check_abilities
from engine.config import BLOCK_SIZE, EngineConfig, ParallelPlan
from engine.errors import ConfigError, PlanError
from engine.model_config import ModelConfig
from engine.shards import check_plan

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

    def _check_split(self, shape: ModelConfig, plan: ParallelPlan) -> None:
        if plan.pp > shape.num_layers:
            self.add_error(
                "pp",
                _("This model has %(layers)s layers, so at most %(layers)s stages.")
                % {"layers": shape.num_layers},
            )
            return
        try:
            check_plan(shape, plan)
        except PlanError as error:
            field = "ep" if str(error).startswith("ep=") else "tp"
            self.add_error(field, str(sentence_of(error)))

    def _plan(self) -> ParallelPlan | None:
        try:
            return self.instance.plan
        except PlanError as error:
            self.add_error("rank_weights", str(sentence_of(error)))
            return None

    def _check_numbers(self, config: EngineConfig) -> None:
        """Refuse at once what no processor of the fleet can do; nodes still unknown are trusted."""
        known = [node.hardware for node in Node.objects.all()]
        if not known or None in known:
            return
        try:
            fleet = {name for hardware in known if hardware for name in hardware.instruction_sets}
            check_abilities(config, fleet)
        except ConfigError as error:
            self.add_error("dtype", str(sentence_of(error)))

    def _check_lengths(self, shape: ModelConfig, cleaned: dict[str, Any]) -> None:
        asked = cleaned["max_model_len"]
        if asked and asked > shape.context_length:
            self.add_error(
                "max_model_len",
                _("This model reads at most %(limit)s tokens.") % {"limit": shape.context_length},
            )
            return
        longest = asked or shape.context_length
        if cleaned["kv_cache_tokens"] < longest + BLOCK_SIZE:
            self.add_error(
                "kv_cache_tokens",
                _(
                    "One conversation may grow to %(length)s tokens and would not fit. Give the "
                    "cache at least %(needed)s tokens, or set a shorter context length."
                )
                % {"length": longest, "needed": longest + BLOCK_SIZE},
            )

    def _post_clean(self) -> None:
        """After the model's own validators: a plan is arithmetic, and wants sane numbers."""
        super()._post_clean()  # type: ignore[misc]  # django-stubs leave out this hook
        if self.errors:
            return
        self.instance.settings = dict(values_of(self))
        shape, plan = self.cleaned_data["model"].shape, self._plan()
        if plan is None:
            return
        self._check_split(shape, plan)
        self._check_lengths(shape, self.cleaned_data)
        if self.errors:
            return
        try:
            self._check_numbers(self.instance.engine_config)
        except ConfigError as error:
            self.add_error(None, str(sentence_of(error)))
