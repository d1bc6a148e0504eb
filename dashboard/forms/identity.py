"""Forms of signing in, of one's own account, and of secrets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from allauth.mfa.base.forms import ReauthenticateForm
from allauth.mfa.base.internal.flows import check_rate_limit
from allauth.mfa.totp.internal.auth import validate_totp_code
from django import forms
from django.contrib.auth.models import User
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard import panel_settings
from dashboard.choices import Role
from dashboard.configuration.panel import PANEL
from dashboard.forms.settings import SettingField
from dashboard.identity.errors import ProviderError
from dashboard.identity.web import check_address, context_of
from dashboard.models import IdentityProvider, Secret
from dashboard.models.secrets import SecretKind

if TYPE_CHECKING:
    _SecretForm = forms.ModelForm[Secret]
    _ProviderForm = forms.ModelForm[IdentityProvider]
else:
    _SecretForm = _ProviderForm = forms.ModelForm

FLAGS = ("sign_in_oidc", "sign_in_local", "mfa_required")
LONGEST_SECRET = 10_000
CODE = forms.TextInput(
    attrs={"autocomplete": "one-time-code", "inputmode": "numeric", "spellcheck": "false"}
)


class FirstCodeForm(forms.Form):
    """The code that shows that the app has understood the secret."""

    code = forms.CharField(
        label=gettext_lazy("Code that the app shows"), max_length=12, widget=CODE
    )

    def __init__(self, data: Mapping[str, Any] | None, user: User, secret: str) -> None:
        self.user, self.secret = user, secret
        super().__init__(data)

    def clean_code(self) -> str:
        """Attempts are limited as those at the door are."""
        forget = check_rate_limit(self.user)
        code = str(self.cleaned_data["code"]).replace(" ", "")
        if not validate_totp_code(self.secret, code):
            raise forms.ValidationError(
                _("This is not the code of now. Are the clocks of the phone and of Tandem right?")
            )
        forget()
        return code


class CodeForm(ReauthenticateForm):  # type: ignore[misc]
    """A code of now, before the second factor is changed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].label = gettext_lazy("Code of the app, or a recovery code")
        self.fields["code"].widget = CODE


class SecretForm(_SecretForm):
    value = forms.CharField(
        label=gettext_lazy("Secret"),
        max_length=LONGEST_SECRET,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=gettext_lazy("It is sealed at once and never shown again."),
    )

    class Meta:
        model = Secret
        fields = ["name", "kind"]
        labels = {"name": gettext_lazy("Name"), "kind": gettext_lazy("Kind")}
        help_texts = {
            "name": gettext_lazy(
                "Settings refer to it by this name; small letters, like hub-token."
            )
        }
        widgets = {"name": forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields["name"].disabled = True
        self.fields["kind"].initial = SecretKind.HUB_TOKEN

    def clean_value(self) -> str:
        value = str(self.cleaned_data["value"]).strip("\r\n")
        if not value or "\0" in value:
            raise forms.ValidationError(_("Enter the secret itself."))
        return value


class ProviderForm(_ProviderForm):
    """With the panel's own switches for it, and which groups give which role."""

    domains = forms.CharField(
        label=gettext_lazy("Allowed e-mail domains"),
        required=False,
        max_length=2_000,
        widget=forms.TextInput(attrs={"placeholder": "example.com, example.org"}),
        help_text=gettext_lazy(
            "Commas between them. Empty lets in everybody whom the provider lets in. Only "
            "addresses that it has verified count."
        ),
    )

    class Meta:
        model = IdentityProvider
        fields = [
            "label", "issuer", "client_id", "secret", "scopes", "ca", "create",
            "groups_claim", "default_role", "own_factor",
        ]  # fmt: skip
        labels = {
            "label": gettext_lazy("Name on the button"),
            "issuer": gettext_lazy("Issuer"),
            "client_id": gettext_lazy("Client ID"),
            "secret": gettext_lazy("Client secret"),
            "scopes": gettext_lazy("Scopes"),
            "ca": gettext_lazy("Certificate authority"),
            "create": gettext_lazy("Make an account for whoever signs in for the first time"),
            "groups_claim": gettext_lazy("Claim with the groups"),
            "default_role": gettext_lazy("Role of everybody else"),
            "own_factor": gettext_lazy("The provider asks for a second factor itself"),
        }
        help_texts = {
            "issuer": gettext_lazy("The address that the provider calls itself, exactly."),
            "secret": gettext_lazy("One of the stored secrets."),
            "ca": gettext_lazy(
                "PEM, where an authority of your own has signed the provider’s certificate."
            ),
            "groups_claim": gettext_lazy(
                "Like groups or realm_access.roles. Empty gives everybody the role below."
            ),
            "own_factor": gettext_lazy("Then the panel asks those who come from there for none."),
        }
        widgets = {
            "label": forms.TextInput(attrs={"placeholder": "Keycloak"}),
            "issuer": forms.URLInput(attrs={"placeholder": "https://id.example/realms/tandem"}),
            "ca": forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "mono"}),
            "client_id": forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
            "scopes": forms.TextInput(attrs={"spellcheck": "false"}),
            "groups_claim": forms.TextInput(attrs={"spellcheck": "false"}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["domains"].initial = ", ".join(self.instance.domains)
        cast("forms.ModelChoiceField[Secret]", self.fields["secret"]).empty_label = _("None yet")
        cast(forms.ChoiceField, self.fields["default_role"]).choices = [
            *Role.choices,
            ("", _("None: they may not come in")),
        ]
        for role in Role:
            self.fields[f"groups_{role}"] = forms.CharField(
                label=_("Groups of the role “%(role)s”") % {"role": role.label},
                required=False,
                max_length=2_000,
                initial=", ".join(self.instance.groups.get(role, [])),
                widget=forms.TextInput(attrs={"spellcheck": "false"}),
            )
        values, fixed = panel_settings.in_effect(), panel_settings.overridden()
        for name in FLAGS:
            field = SettingField(PANEL[name], disabled=name in fixed)
            field.initial, field.label = values[name], capfirst(str(PANEL[name].label))
            self.fields[name] = field

    @property
    def roles(self) -> list[forms.BoundField]:
        return [self[f"groups_{role}"] for role in reversed(list(Role))]

    @property
    def flags(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in FLAGS if not self.fields[name].disabled}

    def clean_issuer(self) -> str:
        issuer = str(self.cleaned_data["issuer"]).strip()
        if issuer:
            _judge(check_address, issuer)
        return issuer

    def clean_ca(self) -> str:
        text = str(self.cleaned_data["ca"]).strip()
        _judge(context_of, text)
        return text

    def clean_domains(self) -> list[str]:
        domains = [domain.lstrip("@").lower() for domain in _parts(self.cleaned_data["domains"])]
        for domain in domains:
            if "." not in domain or "@" in domain or " " in domain:
                raise forms.ValidationError(_("“%(text)s” is no domain.") % {"text": domain})
        return domains

    def clean_scopes(self) -> str:
        scopes = str(self.cleaned_data["scopes"]).split()
        return " ".join(scopes if "openid" in scopes else ["openid", *scopes])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("sign_in_oidc"):
            for name in ("issuer", "client_id", "secret"):
                if not cleaned.get(name) and name not in self.errors:
                    self.add_error(name, _("It is needed for signing in through the provider."))
        return cleaned

    def save(self, commit: bool = True) -> IdentityProvider:
        self.instance.domains = self.cleaned_data["domains"]
        self.instance.groups = {
            role.value: groups
            for role in Role
            if (groups := _parts(self.cleaned_data[f"groups_{role}"]))
        }
        return super().save(commit)


def _parts(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _judge(check: Any, text: str) -> None:
    try:
        check(text)
    except ProviderError as error:
        raise forms.ValidationError(str(error)) from error
