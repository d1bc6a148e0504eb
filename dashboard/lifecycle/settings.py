"""Settings of nodes and of the panel: checked, kept as revisions, and put in effect at once.

Those of deployments are `lifecycle.revisions`.
"""

from collections.abc import Iterator, Mapping

from django.db import connection, transaction
from django.db.models import F, Max, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import outbox, panel_settings
from dashboard.audit import Actor, note
from dashboard.choices import RevisionOrigin, RevisionState
from dashboard.configuration.declared import (
    Catalogue,
    SettingError,
    SettingsRefused,
    Value,
    Values,
)
from dashboard.configuration.node import NODE, cable_address
from dashboard.configuration.panel import PANEL, check_panel
from dashboard.lifecycle.neighbours import tell_neighbours
from dashboard.lifecycle.record import record
from dashboard.models import Node, Revision, Secret
from dashboard.sentences import Sentence

NO_SECRET = _("There is no secret %(name)s. Add it under Settings, Secrets.")
PANEL_LOCK = 0x70616E65
"""Of two changes of the panel's settings the second waits for the first."""


def check_node(node: Node, values: Mapping[str, object]) -> dict[str, Value]:
    """What was entered over what is in use, in full. Raises SettingsRefused."""
    return _checked(NODE, node.settings, values)


def check_panel_values(values: Mapping[str, object]) -> dict[str, Value]:
    """Raises SettingsRefused."""
    merged = _checked(PANEL, panel_settings.kept(), values)
    errors = check_panel(merged)
    if errors:
        raise SettingsRefused(errors)
    return merged


def _checked(catalogue: Catalogue, kept: Values, values: Mapping[str, object]) -> dict[str, Value]:
    checked, wrong = catalogue.check(values)
    wrong += list(_not_stored(catalogue, checked))
    if wrong:
        raise SettingsRefused(wrong)
    return {**catalogue.complete(kept), **checked}


def _not_stored(catalogue: Catalogue, values: Values) -> Iterator[SettingError]:
    named = {name: value for name, value in values.items() if value and catalogue[name].secret}
    stored = set(Secret.objects.filter(name__in=named.values()).values_list("name", flat=True))
    for name, value in named.items():
        if value not in stored:
            yield SettingError(name, Sentence(NO_SECRET, name=str(value)))


@transaction.atomic
def change_node(
    node: Node,
    values: Mapping[str, object],
    actor: Actor,
    *,
    why: str = "",
    origin: str = RevisionOrigin.FORM,
) -> Revision | None:
    """Put new settings in effect; None when nothing differs. Raises SettingsRefused."""
    node = Node.objects.select_for_update().get(pk=node.pk)
    complete = check_node(node, values)
    before = NODE.complete(node.settings)
    if complete == before:
        return None
    rows = Revision.objects.filter(node=node)
    revision = _keep(rows, Revision(node=node), before, complete, actor, why, origin)
    Node.objects.filter(pk=node.pk).update(
        settings=complete, desired_generation=F("desired_generation") + 1
    )
    node.settings = complete
    _move_cable(node)
    record(
        Sentence(
            _("Settings changed by %(by)s (revision %(number)s)."),
            by=actor.name,
            number=revision.number,
        ),
        node=node,
    )
    changed = _differing(NODE, before, complete)
    note(actor, "node.settings", node, before=changed[0], after=changed[1], why=why)
    outbox.nudge(node.pk)
    return revision


def _move_cable(node: Node) -> None:
    """Its address on the cable: what was chosen, else what its agent found."""
    found = (node.inventory or {}).get("link_address", "")
    address = cable_address(node.settings, found)
    if address != node.link_address:
        Node.objects.filter(pk=node.pk).update(link_address=address)
        tell_neighbours(node)


@transaction.atomic
def change_panel(
    values: Mapping[str, object],
    actor: Actor,
    *,
    why: str = "",
    origin: str = RevisionOrigin.FORM,
) -> Revision | None:
    """The same for the panel's own."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [PANEL_LOCK])
    before = PANEL.complete(panel_settings.kept())
    complete = check_panel_values(values)
    if complete == before:
        return None
    rows = Revision.objects.filter(deployment=None, node=None)
    revision = _keep(rows, Revision(), before, complete, actor, why, origin)
    changed = _differing(PANEL, before, complete)
    note(actor, "panel.settings", "Tandem", before=changed[0], after=changed[1], why=why)
    transaction.on_commit(panel_settings.forget)
    panel_settings.forget()
    return revision


def back_to(revision: Revision, actor: Actor, why: str = "") -> Revision | None:
    """The settings of that revision again, as a new one. Raises SettingsRefused."""
    reason = why or f"r{revision.number}"
    origin = RevisionOrigin.ROLLBACK
    if revision.node is not None:
        values = _still_declared(NODE, revision.values)
        return change_node(revision.node, values, actor, why=reason, origin=origin)
    values = _still_declared(PANEL, revision.values)
    return change_panel(values, actor, why=reason, origin=origin)


def _still_declared(catalogue: Catalogue, values: Values) -> dict[str, Value]:
    return {name: value for name, value in values.items() if name in catalogue}


def _keep(
    rows: QuerySet[Revision],
    revision: Revision,
    before: Values,
    values: Values,
    actor: Actor,
    why: str,
    origin: str,
) -> Revision:
    """The next number; the first change also keeps what was there before anybody changed it."""
    last = rows.aggregate(last=Max("number"))["last"] or 0
    if last == 0:
        Revision.objects.create(
            node=revision.node,
            number=1,
            values=before,
            origin=RevisionOrigin.FIRST,
            state=RevisionState.CURRENT,
            by="Tandem",
        )
        last = 1
    replaced = rows.filter(state=RevisionState.CURRENT).order_by("-number").first()
    rows.filter(state=RevisionState.CURRENT).update(state=RevisionState.PAST)
    revision.number = last + 1
    revision.values = dict(values)
    revision.by, revision.user_id = actor.name[:150], actor.user_id
    revision.why, revision.origin = why[:300], origin
    revision.state, revision.applied_at = RevisionState.CURRENT, timezone.now()
    revision.replaces = replaced
    revision.save()
    return revision


def _differing(
    catalogue: Catalogue, before: Values, after: Values
) -> tuple[dict[str, Value], dict[str, Value]]:
    changes = catalogue.changes(before, after)
    return (
        {setting.name: old for setting, old, _new in changes},
        {setting.name: new for setting, _old, new in changes},
    )
