"""Sealing every stored secret anew, under the first key of `monitoring.vault`."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from allauth.mfa.models import Authenticator
from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.db import models, transaction

from monitoring import vault

SEALED = "sealed"
"""The name of every column that holds a sealed secret."""
FACTOR_PARTS = {
    Authenticator.Type.TOTP: "secret",
    Authenticator.Type.RECOVERY_CODES: "seed",
}


@dataclass
class Outcome:
    """How many of each kind; `unreadable` names those whose key is gone."""

    old: Counter[str] = field(default_factory=Counter)
    current: Counter[str] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)


def look() -> Outcome:
    """What is sealed with which key; nothing is changed."""
    return _go_through(change=False)


@transaction.atomic
def reseal_all() -> Outcome:
    """All of it or nothing: a process that dies meanwhile leaves everything as it was, and
    readable, since the old keys stay until somebody removes them."""
    return _go_through(change=True)


def _go_through(change: bool) -> Outcome:
    outcome = Outcome()
    for place in _places():
        rows = place.rows.select_for_update() if change else place.rows
        for row in rows.order_by("pk").iterator(chunk_size=200):
            _take(outcome, place, row, change)
    return outcome


@dataclass(frozen=True)
class _Place:
    """Rows of one kind, and where in them the sealed text is."""

    kind: str
    rows: "models.QuerySet[models.Model]"
    column: str
    part: str = ""
    """Of a JSON column."""

    def read(self, row: models.Model) -> str:
        value = getattr(row, self.column)
        return str(value[self.part] if self.part else value)

    def write(self, row: models.Model, sealed: str) -> None:
        held = getattr(row, self.column)
        setattr(row, self.column, {**held, self.part: sealed} if self.part else sealed)
        row.save(update_fields=[self.column])


def _places() -> Iterator[_Place]:
    for model in apps.get_models():
        try:
            model._meta.get_field(SEALED)
        except FieldDoesNotExist:
            continue
        rows = model._default_manager.exclude(**{SEALED: ""})
        yield _Place(str(model._meta.verbose_name_plural), rows, SEALED)
    for kind, part in FACTOR_PARTS.items():
        rows = Authenticator.objects.filter(type=kind, data__has_key=part)
        yield _Place(str(kind.label), rows, "data", part)


def _take(outcome: Outcome, place: _Place, row: models.Model, change: bool) -> None:
    sealed = place.read(row)
    if vault.is_current(sealed):
        outcome.current[place.kind] += 1
        return
    try:
        fresh = vault.reseal(sealed)
    except vault.SealError:
        outcome.unreadable.append(f"{place.kind}: {row}")
        return
    outcome.old[place.kind] += 1
    if change:
        place.write(row, fresh)
