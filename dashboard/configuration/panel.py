"""The settings of the panel itself. `PANEL` is the one declaration of each."""

from collections.abc import Mapping
from itertools import pairwise

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from dashboard.configuration.declared import Catalogue, Group, Setting, SettingError, Values
from dashboard.sentences import Sentence

VARIABLES: Mapping[str, str] = {
    "keep_seconds_days": "TANDEM_KEEP_SECONDS_DAYS",
    "keep_minutes_days": "TANDEM_KEEP_MINUTES_DAYS",
    "keep_hours_days": "TANDEM_KEEP_HOURS_DAYS",
    "keep_requests_days": "TANDEM_KEEP_REQUESTS_DAYS",
    "public_url": "TANDEM_PUBLIC_URL",
    "smtp_url": "TANDEM_SMTP_URL",
    "mail_from": "TANDEM_MAIL_FROM",
}
"""Settings whose environment variable wins where it is set."""

PANEL = Catalogue(
    groups=[
        Group(name="people", label=_("People")),
        Group(
            name="keep",
            label=_("How long things are kept"),
            note=_("Coarser telemetry is kept at least as long as finer telemetry."),
        ),
        Group(
            name="mail",
            label=_("Mail and addresses"),
            note=_("For alerts by e-mail, and for links in messages and in firmware updates."),
        ),
        Group(
            name="gateway",
            label=_("API keys and budgets"),
            note=_("Who may use how much is set under Budgets."),
        ),
        Group(
            name="firmware",
            label=_("Firmware"),
            note=_("When approved updates may take a box out of service, on the panel’s clock."),
        ),
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
        Setting(
            name="session_days",
            kind="whole",
            label=_("signed in for"),
            group="people",
            default=14,
            unit=_("d"),
            low=1,
            high=365,
            applies="live",
            drivers=(),
            help=_("Days until somebody has to sign in again; counted from signing in."),
        ),
        Setting(
            name="sign_in_local",
            kind="flag",
            label=_("sign in with a password"),
            group="people",
            default=True,
            applies="live",
            drivers=(),
            help=_(
                "Off: only through an identity provider. It holds once an administrator has signed "
                "in that way, so that nobody locks everybody out."
            ),
        ),
        Setting(
            name="sign_in_oidc",
            kind="flag",
            label=_("sign in through an identity provider"),
            group="people",
            default=False,
            applies="live",
            drivers=(),
            help=_("OpenID Connect. It needs a provider, which is entered under Sign-in."),
        ),
        Setting(
            name="mfa_required",
            kind="choice",
            label=_("who needs a second factor"),
            group="people",
            default="nobody",
            choices=[
                ("nobody", _("Nobody")),
                ("operators", _("Operators and administrators")),
                ("everybody", _("Everybody")),
            ],
            applies="live",
            drivers=(),
            help=_("Whoever lacks theirs can do nothing but set it up, under their account."),
        ),
        Setting(
            name="keep_seconds_days",
            kind="whole",
            label=_("telemetry of every second"),
            group="keep",
            default=2,
            unit=_("d"),
            low=1,
            high=60,
            applies="live",
            drivers=(),
            help=_("The largest of the three by far: some 40 MB a node and day."),
        ),
        Setting(
            name="keep_minutes_days",
            kind="whole",
            label=_("telemetry of every minute"),
            group="keep",
            default=60,
            unit=_("d"),
            low=1,
            high=3_660,
            applies="live",
            drivers=(),
            help=_("Averages and extremes of every minute."),
        ),
        Setting(
            name="keep_hours_days",
            kind="whole",
            label=_("telemetry of every hour"),
            group="keep",
            default=1_096,
            unit=_("d"),
            low=1,
            high=36_600,
            applies="live",
            drivers=(),
            help=_("Averages and extremes of every hour; energy and costs are worked out from it."),
        ),
        Setting(
            name="keep_log_days",
            kind="whole",
            label=_("log lines"),
            group="keep",
            default=7,
            unit=_("d"),
            low=1,
            high=366,
            applies="live",
            drivers=(),
            help=_("Of engines, agents and kernels. The oldest of too many go earlier."),
        ),
        Setting(
            name="keep_requests_days",
            kind="whole",
            label=_("records of API requests"),
            group="keep",
            default=7,
            unit=_("d"),
            low=1,
            high=3_660,
            applies="live",
            drivers=(),
            help=_("How long each took and what it used; never what was asked or answered."),
        ),
        Setting(
            name="keep_audit_days",
            kind="whole",
            label=_("audit trail"),
            group="keep",
            default=None,
            optional=True,
            absent=_("for ever"),
            unit=_("d"),
            low=30,
            high=36_600,
            applies="live",
            drivers=(),
            help=_("Who changed what. Empty keeps it for ever."),
        ),
        Setting(
            name="public_url",
            kind="text",
            label=_("address of the panel"),
            group="mail",
            default="",
            optional=True,
            absent=_("not known"),
            pattern=r"https?://[^\s/?#]+/?",
            example="https://tandem.example",
            applies="live",
            drivers=(),
            help=_("Under which people and BMCs reach it. Messages have no links without it."),
        ),
        Setting(
            name="smtp_url",
            kind="text",
            label=_("mail server"),
            group="mail",
            default=None,
            optional=True,
            absent=_("none"),
            pattern=r"[a-z0-9][a-z0-9._-]{0,62}",
            example="mail-server",
            secret=True,
            applies="live",
            drivers=(),
            help=_(
                "The name of a stored secret that holds its address, such as "
                "smtp://user:password@host:587."
            ),
        ),
        Setting(
            name="mail_from",
            kind="text",
            label=_("sender of mail"),
            group="mail",
            default=None,
            optional=True,
            absent="tandem@localhost",
            pattern=r"[^\s@]+@[^\s@]+|[^<>@\n]+ <[^\s@<>]+@[^\s@<>]+>",
            example="Tandem <tandem@example.com>",
            applies="live",
            drivers=(),
            help=_("What recipients see as the sender."),
        ),
        Setting(
            name="budget_warning_percent",
            kind="whole",
            label=_("warning of budgets"),
            group="gateway",
            default=80,
            unit="%",
            low=1,
            high=100,
            applies="live",
            drivers=(),
            help=_("The share of a budget from which answers carry a warning."),
        ),
        Setting(
            name="key_grace_hours",
            kind="whole",
            label=_("grace of rotated keys"),
            group="gateway",
            default=24,
            unit=_("hours"),
            low=0,
            high=720,
            applies="live",
            drivers=(),
            help=_("How long the old secret is good after a key got a new one, unless said there."),
        ),
        Setting(
            name="firmware_day",
            kind="choice",
            label=_("maintenance window"),
            group="firmware",
            default="any",
            choices=[
                ("any", _("At any time")),
                ("monday", _("Mondays")),
                ("tuesday", _("Tuesdays")),
                ("wednesday", _("Wednesdays")),
                ("thursday", _("Thursdays")),
                ("friday", _("Fridays")),
                ("saturday", _("Saturdays")),
                ("sunday", _("Sundays")),
            ],
            applies="live",
            drivers=(),
            help=_("The day on which it begins. An update that has begun goes on beyond its end."),
        ),
        Setting(
            name="firmware_hour",
            kind="whole",
            label=_("it begins at"),
            group="firmware",
            default=2,
            unit=_("o’clock"),
            low=0,
            high=23,
            applies="live",
            drivers=(),
            help=_("The hour of that day, by the panel’s clock."),
        ),
        Setting(
            name="firmware_hours",
            kind="whole",
            label=_("it lasts"),
            group="firmware",
            default=4,
            unit=_("hours"),
            low=1,
            high=168,
            applies="live",
            drivers=(),
            help=_("No update begins afterwards."),
        ),
        Setting(
            name="firmware_automatic",
            kind="flag",
            label=_("monthly update"),
            group="firmware",
            default=False,
            applies="live",
            drivers=(),
            help=_(
                "Once a month the newest image that fits becomes an update of the boxes that run "
                "an older version. It waits for an approval, unless an administrator gave one on "
                "the image’s page beforehand."
            ),
        ),
    ],
)

ORDER = ("keep_seconds_days", "keep_minutes_days", "keep_hours_days")
SHORTER = gettext_noop("This must not be less than the %(days)s days of finer telemetry.")


def check_panel(values: Values) -> list[SettingError]:
    """What does not fit together in settings that are right one by one."""
    complete = PANEL.complete(values)
    days = [(name, complete[name]) for name in ORDER]
    errors = [
        SettingError(name, Sentence(SHORTER, days=finer))
        for (_finer, finer), (name, coarser) in pairwise(days)
        if isinstance(finer, int) and isinstance(coarser, int) and coarser < finer
    ]
    if not complete["sign_in_local"] and not complete["sign_in_oidc"]:
        errors.append(SettingError("sign_in_local", Sentence(NO_WAY_IN)))
    return errors


NO_WAY_IN = gettext_noop("Nobody could sign in: leave at least one way to do so.")
