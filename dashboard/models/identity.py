"""The OpenID Connect provider that people sign in through."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from dashboard.choices import Role
from dashboard.models.secrets import Secret


class IdentityProvider(models.Model):
    """One row at most. Whether it is used says the panel's setting `sign_in_oidc`."""

    label = models.CharField(_("name on the button"), max_length=40, blank=True)
    issuer = models.CharField(_("issuer"), max_length=300, blank=True)
    client_id = models.CharField(_("client ID"), max_length=300, blank=True)
    secret = models.ForeignKey(
        Secret, models.PROTECT, null=True, blank=True, verbose_name=_("client secret")
    )
    scopes = models.CharField(_("scopes"), max_length=300, default="openid profile email")
    ca = models.TextField(_("certificate authority"), blank=True)
    """PEM, for a provider whose certificate no public authority has signed."""
    domains = models.JSONField(_("allowed e-mail domains"), default=list)
    create = models.BooleanField(_("make accounts"), default=True)
    groups_claim = models.CharField(_("claim of groups"), max_length=100, blank=True)
    groups = models.JSONField(default=dict)
    """Role -> values of the claim that give it."""
    default_role = models.CharField(
        _("role of everybody else"),
        max_length=10,
        choices=Role.choices,
        default=Role.VIEWER,
        blank=True,
    )
    """Empty where those without a matching group may not come in."""
    own_factor = models.BooleanField(_("asks for a second factor itself"), default=False)
    came = models.JSONField(default=list)
    """Whom it has let in, as it is set up now; empty again after every change of it."""
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = _("identity provider")
        verbose_name_plural = _("identity providers")

    def __str__(self) -> str:
        return self.label or self.issuer
