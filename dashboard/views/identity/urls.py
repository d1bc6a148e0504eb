"""Signing in, one's own account, and who administers both.

Some routes have a second name: allauth leads there by its own.
"""

from django.urls import path
from django.views.generic import RedirectView

from dashboard.views import session
from dashboard.views.identity import account, secrets, settings

urlpatterns = [
    path("sign-in/", session.sign_in, name="account_login"),
    path("sign-in/", session.sign_in, name="sign-in"),
    path("sign-in/code/", session.sign_in_code, name="mfa_authenticate"),
    path("sign-in/oidc/", session.oidc_begin, name="oidc-begin"),
    path("sign-in/oidc/callback/", session.oidc_callback, name="oidc-callback"),
    path("sign-out/", session.sign_out, name="sign-out"),
    # Django's own form knows neither second factors nor limits.
    path("admin/login/", RedirectView.as_view(pattern_name="sign-in", query_string=True)),
    path("account/", account.account, name="account"),
    path("account/password/", account.password, name="account-password"),
    path("account/sessions/", account.end_sessions, name="account-sessions"),
    path("account/second-factor/", account.factor, name="account-factor"),
    path("account/second-factor/codes/", account.fresh_codes, name="account-codes"),
    path("account/second-factor/remove/", account.remove_factor, name="account-factor-remove"),
    path("account/provider/", account.connect, name="account-connect"),
    path("account/provider/remove/", account.disconnect, name="account-disconnect"),
    path("settings/sign-in/", settings.sign_in_settings, name="sign-in-settings"),
    path("settings/secrets/", secrets.secrets, name="secrets"),
    path("settings/secrets/new/", secrets.secret_edit, name="secret-new"),
    path("settings/secrets/<str:name>/", secrets.secret_edit, name="secret-edit"),
    path("settings/secrets/<str:name>/remove/", secrets.secret_remove, name="secret-remove"),
]
