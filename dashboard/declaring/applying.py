"""A document is looked at as a whole, and made so in one transaction."""

from django.db import connection, transaction

from dashboard.audit import Actor, note
from dashboard.declaring.changes import Change, Difference, Looking
from dashboard.declaring.parts import PARTS
from dashboard.declaring.problems import DocumentRefused
from dashboard.declaring.reading import Document
from dashboard.models import DeclaredDocument

LOCK = 0x6465636C
"""Of two that apply the second waits for the first, and finds what that has changed."""
KEPT = 20
"""Applied documents."""


def changes(document: Document, *, prune: bool = False) -> list[Change]:
    """What would be different. Everything is checked, nothing changed. Raises DocumentRefused."""
    look = Looking(document, prune)
    found = [change for part in PARTS for change in part(look)]
    if look.problems:
        raise DocumentRefused(look.problems)
    return found


def differences(document: Document, *, prune: bool = False) -> list[Difference]:
    found = changes(document, prune=prune)
    return [one for change in found for one in change.differences]


def apply(
    document: Document, actor: Actor, *, prune: bool = False, why: str = "manage.py apply"
) -> list[Change]:
    """Make it so; answers what was changed. A deployment that runs changes by its own job.

    Raises DocumentRefused; nothing is changed then.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        found = changes(document, prune=prune)
        look = Looking(document)
        for change in found:
            with look.at(change.path):
                change.make(actor, why=why)
            if look.problems:
                raise DocumentRefused(look.problems)
        _keep(document, actor, len(found))
    return found


def _keep(document: Document, actor: Actor, changed: int) -> None:
    """It is what drift is measured against from now on; the same again is no other one."""
    last = DeclaredDocument.objects.first()
    if last is not None and last.text == document.text and not changed:
        return
    row = DeclaredDocument.objects.create(
        text=document.text,
        by=actor.name[:150],
        user_id=actor.user_id,
        via=actor.via,
        changed=changed,
    )
    note(actor, "document.apply", row, after={"changed": changed})
    kept = DeclaredDocument.objects.values_list("pk", flat=True)[:KEPT]
    DeclaredDocument.objects.exclude(pk__in=list(kept)).delete()
