"""What applying a revision would do: what changes, which way, whether it fits, the pause."""

from collections.abc import Sequence
from enum import StrEnum
from statistics import median

import msgspec
from django.utils.translation import gettext_noop as _

from dashboard.choices import (
    ANSWERING_REPLICA_STATUSES,
    LIVE_REPLICA_STATUSES,
    DeploymentStatus,
    ReplicaRole,
)
from dashboard.configuration.engine import ENGINE
from dashboard.lifecycle import fitting
from dashboard.models import Deployment, Model, Revision
from dashboard.sentences import Sentence

LOADS = 5
"""Earlier launches of the deployment whose loading is taken for the next one's."""
NO_MODEL = _("There is no model %(name)s in the catalogue.")
FALLBACK_ALONE = _(
    "The fallback answers alone now; it can be changed once the deployment answers again itself."
)


class ChangeWay(StrEnum):
    NOTHING = "nothing"
    STORED = "stored"
    """Nothing runs: it counts from the next start."""
    LIVE = "live"
    """Engines take it while they run."""
    BESIDE = "beside"
    """A launch with the new settings proves itself beside the old one."""
    IN_PLACE = "in-place"
    """There is no room for both: the old launch ends first."""
    REFUSED = "refused"


NOTHING, STORED, LIVE = ChangeWay.NOTHING, ChangeWay.STORED, ChangeWay.LIVE
BESIDE, IN_PLACE, REFUSED = ChangeWay.BESIDE, ChangeWay.IN_PLACE, ChangeWay.REFUSED


class Difference(msgspec.Struct, frozen=True):
    name: str
    label: str
    before: str
    after: str
    live: bool
    """Engines take it without a restart."""


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    way: ChangeWay
    changes: list[Difference]
    replicas: int
    """Launches that are replaced, one after another."""
    why: Sentence = Sentence()
    """Of the way: why there is no room beside, or why it is refused."""
    pause_seconds: float | None
    """For which requests wait; None: not known."""
    basis: Sentence
    """What that number comes from."""


def look_ahead(revision: Revision) -> Preview:
    """As things stand now; the same is decided again when it is applied."""
    deployment = revision.deployment
    assert deployment is not None
    changes = differences(revision)
    way, why = _way(deployment, revision, changes)
    pause, basis = _pause(deployment, way)
    return Preview(
        way=way, changes=changes, replicas=deployment.dp, why=why, pause_seconds=pause, basis=basis
    )


def differences(revision: Revision, other: Revision | None = None) -> list[Difference]:
    """Against what it replaces, or another revision, in the reader's words."""
    before = other or revision.replaces
    if before is None:
        return []
    found = [
        Difference(
            setting.name,
            str(setting.label),
            setting.shown(old),
            setting.shown(new),
            setting.applies == "live",
        )
        for setting, old, new in ENGINE.changes(before.values, revision.values)
    ]
    return found + _content_differences(before, revision)


class Row(msgspec.Struct, frozen=True):
    """One setting in two revisions."""

    label: str
    before: str
    after: str
    differs: bool


def side_by_side(revision: Revision, other: Revision | None) -> list[Row]:
    """Every setting, those that differ first."""
    new = ENGINE.complete(revision.values)
    old = ENGINE.complete(other.values) if other is not None else new
    rows = [
        Row(
            str(setting.label),
            setting.shown(old[setting.name]),
            setting.shown(new[setting.name]),
            old[setting.name] != new[setting.name],
        )
        for setting in ENGINE
    ]
    before = other.content if other is not None else revision.content
    model, fallback = str(Sentence(_("model"))), str(Sentence(_("fallback")))
    for label, was, now in (
        (model, str(before.get("model")), str(revision.content.get("model"))),
        (fallback, _told(before.get("fallback")), _told(revision.content.get("fallback"))),
    ):
        rows.append(Row(label, was, now, was != now))
    return sorted(rows, key=lambda row: not row.differs)


def _content_differences(before: Revision, after: Revision) -> list[Difference]:
    found = []
    old_model, new_model = before.content.get("model"), after.content.get("model")
    if old_model != new_model:
        label = str(Sentence(_("model")))
        found.append(Difference("model", label, str(old_model), str(new_model), False))
    old, new = before.content.get("fallback"), after.content.get("fallback")
    if old != new:
        label = str(Sentence(_("fallback")))
        found.append(Difference("fallback", label, _told(old), _told(new), True))
    return found


def _told(fallback: dict[str, object] | None) -> str:
    if fallback is None:
        return str(Sentence(_("none")))
    return ", ".join(f"{name}={value}" for name, value in fallback.items() if value is not None)


def _way(
    deployment: Deployment, revision: Revision, changes: Sequence[Difference]
) -> tuple[ChangeWay, Sentence]:
    if not changes:
        return NOTHING, Sentence()
    if (gone := _gone(revision)) is not None:
        return REFUSED, gone
    stopped = (DeploymentStatus.STOPPED, DeploymentStatus.FAILED, DeploymentStatus.STOPPING)
    live = deployment.replicas.filter(status__in=LIVE_REPLICA_STATUSES).exists()
    if deployment.status in stopped or not live:
        return STORED, fitting.no_place_for_all(deployment, revision) or Sentence()
    if any(change.name == "fallback" for change in changes) and _fallback_alone(deployment):
        return REFUSED, Sentence(FALLBACK_ALONE)
    if all(change.live or change.name == "dp" for change in changes):
        more = int(revision.values.get("dp") or 1) - deployment.dp
        full = fitting.no_place_for_more(deployment, revision, more)
        return (LIVE, Sentence()) if full is None else (REFUSED, full)
    too_many = fitting.no_place_for_all(deployment, revision)
    if too_many is not None:
        return REFUSED, too_many
    beside = fitting.no_place_beside(deployment, revision)
    if beside is None:
        return BESIDE, Sentence()
    instead = fitting.no_place_instead(deployment, revision)
    return (IN_PLACE, beside) if instead is None else (REFUSED, instead)


def _gone(revision: Revision) -> Sentence | None:
    """A model that it names and that has left the catalogue since."""
    fallback = revision.content.get("fallback") or {}
    named = {name for name in (revision.content.get("model"), fallback.get("model")) if name}
    known = set(Model.objects.filter(name__in=named).values_list("name", flat=True))
    return next((Sentence(NO_MODEL, name=name) for name in sorted(named - known)), None)


def _fallback_alone(deployment: Deployment) -> bool:
    answering = deployment.replicas.filter(status__in=ANSWERING_REPLICA_STATUSES)
    return set(answering.values_list("role", flat=True)) == {ReplicaRole.FALLBACK}


def _pause(deployment: Deployment, way: ChangeWay) -> tuple[float | None, Sentence]:
    if way != IN_PLACE:
        return 0.0, Sentence(_("The old launch answers until the new one has proved itself."))
    loads = [
        (ready - created).total_seconds()
        for created, ready in deployment.replicas.exclude(ready_at=None)
        .order_by("-pk")
        .values_list("created", "ready_at")[:LOADS]
        if ready is not None
    ]
    if not loads:
        return None, Sentence(_("It has never been loaded, so nothing is known yet."))
    return round(median(loads), 1), Sentence(
        _("The median of its last %(count)s loads, measured. Requests wait meanwhile."),
        count=len(loads),
    )
