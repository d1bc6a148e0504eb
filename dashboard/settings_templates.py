"""Templates: engine settings kept under a name, to begin other deployments with."""

import re
from collections.abc import Mapping

from django.db import transaction
from django.utils.translation import gettext_noop as _

from dashboard.audit import Actor, note
from dashboard.configuration.declared import SettingError, SettingsRefused, Value
from dashboard.configuration.engine import ENGINE
from dashboard.models import SettingsTemplate
from dashboard.sentences import Sentence

NAME = re.compile(r"[A-Za-z0-9_-]{1,63}")
ODD_NAME = _("A name has up to 63 letters, digits, hyphens and underscores.")
LONG_NOTE = _("This may have at most %(most)s characters.")
MOST_NOTE = 200


def check(name: str, values: Mapping[str, object]) -> dict[str, Value]:
    """What differs from the defaults: each value sound by itself; whether they go together is for
    the model it is used with. Raises SettingsRefused."""
    checked, errors = ENGINE.check(values)
    if not NAME.fullmatch(name):
        errors.append(SettingError("name", Sentence(ODD_NAME)))
    if errors:
        raise SettingsRefused(errors)
    return {
        setting: value for setting, value in checked.items() if value != ENGINE[setting].default
    }


@transaction.atomic
def keep(name: str, text: str, values: Mapping[str, object], actor: Actor) -> SettingsTemplate:
    """Make it, or replace the one of this name. Raises SettingsRefused."""
    kept = check(name, values)
    if len(text) > MOST_NOTE:
        raise SettingsRefused([SettingError("note", Sentence(LONG_NOTE, most=MOST_NOTE))])
    row = SettingsTemplate.objects.select_for_update().filter(name=name).first()
    before = dict(row.values) if row else None
    row = row or SettingsTemplate(name=name)
    row.note, row.values, row.by = text, kept, actor.name[:150]
    row.save()
    note(actor, "template.keep", row, before=before, after=kept)
    return row


@transaction.atomic
def remove(row: SettingsTemplate, actor: Actor) -> None:
    note(actor, "template.remove", row, before=row.values)
    row.delete()
