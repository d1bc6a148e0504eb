"""What answers from one box while the deployment cannot; part of the deployment's form."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.choices import FallbackMode
from dashboard.models import Deployment, Fallback, Model
from dashboard.sentences import sentence_of
from engine.config import BLOCK_SIZE, ParallelPlan
from engine.errors import PlanError
from engine.model_config import ModelConfig
from engine.shards import check_plan

if TYPE_CHECKING:
    _FallbackForm = forms.ModelForm[Fallback]
else:
    _FallbackForm = forms.ModelForm

OPTIONAL = ("tp", "dtype", "kv_dtype", "kv_cache_tokens", "returns")
NONE = ("", gettext_lazy("None: answers wait until the boxes are back"))


class FallbackForm(_FallbackForm):
    """`check` it against its deployment once both are valid by themselves; `keep` saves it."""

    mode = forms.ChoiceField(
        label=gettext_lazy("Fallback"),
        choices=[NONE, *FallbackMode.choices],
        required=False,
        help_text=gettext_lazy(
            "A smaller launch on one box that takes over under the same name. Always running costs "
            "its memory all the time and takes over in a second or two."
        ),
    )

    class Meta:
        model = Fallback
        fields = ["mode", "model", "tp", "dtype", "kv_dtype", "kv_cache_tokens", "returns"]

    def __init__(self, data: QueryDict | None = None, instance: Fallback | None = None) -> None:
        super().__init__(data, prefix="fallback", instance=instance)
        choice = self.fields["model"]
        assert isinstance(choice, forms.ModelChoiceField)
        choice.empty_label = _("the same model")
        for name in OPTIONAL:
            self.fields[name].required = False

    @property
    def wanted(self) -> bool:
        return bool(self.cleaned_data.get("mode"))

    def clean(self) -> dict[str, Any]:
        """What was left out, as when there is to be no fallback, takes its default."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        blank = Fallback()
        for name in OPTIONAL:
            if cleaned.get(name) in (None, "") and name not in self.errors:
                cleaned[name] = getattr(blank, name)
        return cleaned

    @property
    def content(self) -> dict[str, Any] | None:
        """As a revision holds it; None where none is wanted."""
        if not self.wanted:
            return None
        model = self.cleaned_data["model"]
        told = {name: self.cleaned_data[name] for name in ("mode", *OPTIONAL)}
        return told | {"model": model.name if model else None}

    def check(self, deployment: Deployment) -> bool:
        """Whether it can stand in for `deployment`; if not, its fields say why."""
        if not self.wanted:
            return True
        model: Model = self.cleaned_data["model"] or deployment.model
        self._check_plan(model.shape)
        self._check_length(model.shape, deployment)
        return not self.errors

    def keep(self, deployment: Deployment) -> None:
        """Save it for a saved deployment, unless none is wanted."""
        if self.wanted:
            self.instance.deployment = deployment
            self.save()

    def _check_plan(self, shape: ModelConfig) -> None:
        try:
            check_plan(shape, ParallelPlan(tp=self.cleaned_data["tp"]))
        except PlanError as error:
            self.add_error("tp", str(sentence_of(error)))

    def _check_length(self, shape: ModelConfig, deployment: Deployment) -> None:
        longest = min(deployment.max_model_len or shape.context_length, shape.context_length)
        if self.cleaned_data["kv_cache_tokens"] < longest + BLOCK_SIZE:
            self.add_error(
                "kv_cache_tokens",
                _(
                    "One conversation may grow to %(length)s tokens and would not fit. Give the "
                    "cache at least %(needed)s tokens, or set a shorter context length."
                )
                % {"length": longest, "needed": longest + BLOCK_SIZE},
            )
