"""Where alerts are told. An address and a secret are sealed, and never shown again."""

import ipaddress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard import panel_settings
from monitoring.alerts.notify.addresses import allowed, check_url
from monitoring.alerts.notify.deliver import Address, address_of
from monitoring.alerts.notify.errors import UndeliverableError
from monitoring.models import Channel, ChannelKind
from monitoring.vault import seal

if TYPE_CHECKING:
    _ChannelForm = forms.ModelForm[Channel]
else:
    _ChannelForm = forms.ModelForm

MOST_RECIPIENTS = 20
SECRETS = {
    ChannelKind.WEBHOOK: gettext_lazy(
        "Signs every message (HMAC-SHA256), so that the receiver can tell that it comes from here."
    ),
    ChannelKind.FEISHU: gettext_lazy("The bot’s signature key, where it asks for signatures."),
    ChannelKind.DINGTALK: gettext_lazy("The robot’s signing secret; it begins with SEC."),
}
PLACES = {
    ChannelKind.WEBHOOK: "https://receiver.example/alerts",
    ChannelKind.SLACK: "https://hooks.slack.com/services/…",
    ChannelKind.FEISHU: "https://open.feishu.cn/open-apis/bot/v2/hook/…",
    ChannelKind.DINGTALK: "https://oapi.dingtalk.com/robot/send?access_token=…",
}
NOT_SENT_THERE = gettext_lazy(
    "Nothing is sent to this address: link-local addresses hand out credentials on many clouds."
)


class ChannelForm(_ChannelForm):
    class Meta:
        model = Channel
        fields = ["name", "language", "least", "after_minutes", "repeat_minutes", "resolved"]
        widgets = {"name": forms.TextInput(attrs={"autocomplete": "off"})}
        error_messages = {
            "name": {"unique": gettext_lazy("There is a channel of this name already.")}
        }

    language = forms.ChoiceField(label=gettext_lazy("Language"), choices=settings.LANGUAGES)
    url = forms.CharField(
        label=gettext_lazy("Address"),
        max_length=1000,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=gettext_lazy(
            "It is sealed and not shown again. Addresses on this machine and in your own network "
            "are allowed, link-local ones are not, and redirects are not followed."
        ),
    )
    secret = forms.CharField(
        label=gettext_lazy("Secret"),
        max_length=500,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    recipients = forms.CharField(
        label=gettext_lazy("Recipients"),
        max_length=2000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=gettext_lazy("E-mail addresses, one on each line."),
    )

    def __init__(self, *args: Any, kind: ChannelKind, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance.pk:
            self.fields["language"].initial = panel_settings.current()["language"]
        self.kind = kind
        self.known = self._known()
        if kind == ChannelKind.EMAIL:
            del self.fields["url"], self.fields["secret"]
            if self.known:
                self.initial["recipients"] = "\n".join(self.known.recipients)
            return
        del self.fields["recipients"]
        self.fields["url"].widget.attrs["placeholder"] = self.instance.hint or PLACES[kind]
        if self.instance.pk:
            self.fields["url"].help_text = _("Leave it empty to keep the one that is stored.")
        if kind not in SECRETS:
            del self.fields["secret"]
            return
        kept = _("Leave it empty to keep the one that is stored.")
        stored = bool(self.known and self.known.secret)
        self.fields["secret"].help_text = kept if stored else SECRETS[kind]

    def _known(self) -> Address | None:
        """What is stored; None where it cannot be read any more and has to be entered again."""
        if not self.instance.pk:
            return None
        try:
            return address_of(self.instance)
        except UndeliverableError:
            return None

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"].strip()
        if not url:
            if self.known is None:
                raise ValidationError(_("Enter the address that messages are sent to."))
            return self.known.url
        try:
            _scheme, host, _port = check_url(url)
        except UndeliverableError as error:
            raise ValidationError(str(error)) from error
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return url
        if not allowed(address):
            raise ValidationError(str(NOT_SENT_THERE))
        return url

    def clean_recipients(self) -> list[str]:
        text: str = self.cleaned_data["recipients"]
        found = list(dict.fromkeys(text.replace(",", " ").replace(";", " ").split()))
        if not found:
            raise ValidationError(_("Enter at least one e-mail address."))
        if len(found) > MOST_RECIPIENTS:
            raise ValidationError(
                _("At most %(count)s recipients; use a list address for more.")
                % {"count": MOST_RECIPIENTS}
            )
        for recipient in found:
            try:
                validate_email(recipient)
            except ValidationError as error:
                raise ValidationError(
                    _("“%(text)s” is no e-mail address.") % {"text": recipient}
                ) from error
        return found

    def save(self, commit: bool = True) -> Channel:
        cleaned = self.cleaned_data
        secret = cleaned.get("secret") or (self.known.secret if self.known else "")
        address = Address(
            url=cleaned.get("url", ""), secret=secret, recipients=cleaned.get("recipients", [])
        )
        self.instance.kind = self.kind
        self.instance.sealed = seal(msgspec.to_builtins(address))
        self.instance.hint = _hint(address)
        return super().save(commit)


def _hint(address: Address) -> str:
    """What tells one channel from another without giving its address away."""
    if address.recipients:
        return ", ".join(address.recipients)[:200]
    return f"{urlsplit(address.url).hostname}/…"[:200]
