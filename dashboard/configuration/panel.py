"""The settings of the panel itself. `PANEL` is the one declaration of each."""

from django.utils.translation import gettext_lazy as _

from dashboard.configuration.declared import Catalogue, Group, Setting

PANEL = Catalogue(
    groups=[
        Group(name="people", label=_("People")),
        Group(name="keep", label=_("How long things are kept")),
        Group(name="mail", label=_("Mail")),
    ],
    settings=[
        Setting(
            name="language",
            kind="choice",
            label=_("first language"),
            group="people",
            default="en",
            choices=[("en", _("English")), ("zh-hans", _("Simplified Chinese"))],
            applies="live",
            drivers=(),
            help=_("For people whose browser asks for none of ours, and for mail."),
        ),
    ],
)
