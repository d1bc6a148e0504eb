"""The pages under Settings, in the order of their tabs, and who sees them."""

from django.utils.translation import gettext_lazy as _

from dashboard.choices import Role

TABS = (
    ("settings", _("Panel"), Role.VIEWER),
    ("people", _("People"), Role.ADMIN),
    ("teams", _("Teams"), Role.ADMIN),
    ("all-keys", _("API keys"), Role.ADMIN),
    ("budgets", _("Budgets"), Role.ADMIN),
    ("sign-in-settings", _("Sign-in"), Role.ADMIN),
    ("secrets", _("Secrets"), Role.ADMIN),
    ("audit", _("Audit"), Role.ADMIN),
    ("templates", _("Templates"), Role.VIEWER),
    ("declared", _("As a file"), Role.ADMIN),
    ("settings-reference", _("All settings"), Role.VIEWER),
)
