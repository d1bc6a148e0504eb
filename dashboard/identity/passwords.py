"""Passwords of our own: whether they count, and how often one may try."""

from typing import Any

from allauth.account.adapter import get_adapter
from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from dashboard.identity.provider import local_open


class PasswordGate:
    """Before Django's own backend: where passwords are switched off, none is looked at."""

    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> None:
        if not local_open():
            raise PermissionDenied


class PasswordForm(AuthenticationForm):
    """Attempts are limited, for an address and for a name."""

    error_messages = {
        **AuthenticationForm.error_messages,
        "closed": _("Passwords are switched off here. Sign in through your identity provider."),
    }

    def clean(self) -> dict[str, Any]:
        username = self.cleaned_data.get("username")
        password = self.cleaned_data.get("password")
        if username is None or not password:
            return self.cleaned_data
        if not local_open():
            raise forms.ValidationError(self.error_messages["closed"], code="closed")
        self.user_cache = get_adapter().authenticate(
            self.request, username=username, password=password
        )
        if self.user_cache is None:
            raise self.get_invalid_login_error()
        self.confirm_login_allowed(self.user_cache)
        return self.cleaned_data
