"""Revisions of a deployment: proposed, looked at before they are applied, applied by a job.

A revision is the declared settings in full (`values`) and the rest of a deployment's configuration
(`content`): `{"model": NAME, "fallback": null | {"mode", "returns", "model", "tp", "dtype",
"kv_dtype", "kv_cache_tokens"}}`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import audit
from dashboard.audit import Actor
from dashboard.choices import JobKind, RevisionOrigin, RevisionState
from dashboard.configuration.checks import check_engine
from dashboard.configuration.declared import SettingError, SettingsRefused, Value
from dashboard.configuration.engine import ENGINE
from dashboard.configuration.fallback import DECLARED, check_fallback
from dashboard.errors import StatusConflict
from dashboard.lifecycle import jobs
from dashboard.lifecycle.changes import locked
from dashboard.lifecycle.preview import (
    LIVE,
    NO_MODEL,
    NOTHING,
    REFUSED,
    STORED,
    Preview,
    look_ahead,
)
from dashboard.lifecycle.record import record
from dashboard.models import Deployment, Fallback, Job, Model, Node, Revision
from dashboard.sentences import Sentence

FALLBACK = ("mode", "returns", "tp", "dtype", "kv_dtype", "kv_cache_tokens")
CONTENT = ("model", "fallback")
NOBODY = "Tandem"

NO_MAPPING = _("names with values are expected here.")
NO_ENTRY = _("there is no such entry; known are %(known)s.")


def content_of(deployment: Deployment) -> dict[str, Any]:
    """What belongs to its configuration beside the declared settings, as it is now."""
    fallback = deployment.fallback_or_none
    if fallback is None:
        return {"model": deployment.model.name, "fallback": None}
    told = {name: getattr(fallback, name) for name in FALLBACK}
    told["model"] = fallback.model.name if fallback.model else None
    return {"model": deployment.model.name, "fallback": told}


@transaction.atomic
def current(deployment: Deployment) -> Revision:
    """The revision in use; made from the present settings where there was none."""
    deployment = locked(deployment.pk)
    if deployment.revision is not None:
        return deployment.revision
    revision = Revision.objects.create(
        deployment=deployment,
        number=_next_number(deployment),
        values=ENGINE.complete(deployment.settings),
        content=content_of(deployment),
        by=NOBODY,
        origin=RevisionOrigin.FIRST,
        state=RevisionState.CURRENT,
        applied_at=timezone.now(),
    )
    Deployment.objects.filter(pk=deployment.pk).update(revision=revision)
    return revision


@transaction.atomic
def propose(
    deployment: Deployment,
    values: Mapping[str, object],
    content: Mapping[str, Any] | None = None,
    *,
    actor: Actor,
    why: str = "",
    origin: str = RevisionOrigin.FORM,
) -> Revision:
    """Keep settings to be applied: `values` over those in use, `content` likewise.

    The same proposal twice is one revision. Raises SettingsRefused with a sentence for each setting
    that is wrong.
    """
    before = current(deployment)
    whole = {**before.content, **(content or {})}
    merged = {**ENGINE.complete(before.values), **values}
    checked = check(deployment, merged, whole)
    whole = settled(whole)
    last = Revision.objects.filter(deployment=deployment).order_by("-number")[0]
    same = (last.values, last.content) == (checked, whole)
    if same and last.state == RevisionState.PROPOSED and last.replaces_id == before.pk:
        return last
    revision = Revision.objects.create(
        deployment=deployment,
        number=_next_number(deployment),
        values=checked,
        content=whole,
        by=str(actor)[:150],
        user_id=actor.user_id,
        why=why[:300],
        origin=origin,
        replaces=before,
    )
    audit.note(
        actor,
        "deployment.propose",
        deployment,
        before=_differing(before, revision, old=True),
        after=_differing(before, revision, old=False),
        why=why,
    )
    return revision


def check(
    deployment: Deployment, values: Mapping[str, object], content: Mapping[str, Any]
) -> dict[str, Value]:
    """The values in full. Raises SettingsRefused."""
    if errors := list(_odd(content)):
        raise SettingsRefused(errors)
    model = Model.objects.filter(name=str(content.get("model", ""))[:200]).first()
    if model is None:
        name = str(content.get("model", ""))[:60]
        raise SettingsRefused([SettingError("model", Sentence(NO_MODEL, name=name))])
    checked, errors = check_engine(values, model.shape, fleet_abilities())
    if not errors and content.get("fallback") is not None:
        told = content["fallback"]
        other = Model.objects.filter(name=told.get("model")).first() if told.get("model") else model
        errors = check_fallback(told, other.shape if other else None, checked)
    if errors:
        raise SettingsRefused(errors)
    return ENGINE.complete(checked)


def _odd(content: Mapping[str, Any]) -> Iterator[SettingError]:
    told = content.get("fallback")
    if told is not None and not isinstance(told, Mapping):
        yield SettingError("fallback", Sentence(NO_MAPPING))
        return
    names = [name for name in content if name not in CONTENT]
    names += [f"fallback.{name}" for name in told or () if name not in (*FALLBACK, "model")]
    for name in names:
        known = (*FALLBACK, "model") if "." in name else CONTENT
        yield SettingError(name[:60], Sentence(NO_ENTRY, known=", ".join(known)))
    other = (told or {}).get("model")
    if other is not None and not isinstance(other, str):
        yield SettingError("fallback.model", Sentence(NO_MODEL, name=repr(other)[:60]))


def settled(content: Mapping[str, Any]) -> dict[str, Any]:
    """What `check` took, as a revision keeps it: numbers are numbers."""
    told = content.get("fallback")
    if told is None:
        return {"model": content["model"], "fallback": None}
    numbers, _none_wrong = ENGINE.check({name: told[name] for name in DECLARED})
    kept = {name: numbers.get(name, told[name]) for name in FALLBACK}
    return {"model": content["model"], "fallback": kept | {"model": told.get("model") or None}}


def fleet_abilities() -> set[str] | None:
    """What the processors know, all nodes together; None while one of them is unknown."""
    known = [node.hardware for node in Node.objects.all()]
    if not known or None in known:
        return None
    return {name for hardware in known if hardware for name in hardware.instruction_sets}


def preview(revision: Revision) -> Preview:
    """What applying it would do, as things stand."""
    return look_ahead(revision)


@transaction.atomic
def apply(revision: Revision, actor: Actor) -> Job | None:
    """Put it in use. Of a deployment that runs, by the job that is answered; None where nothing
    runs and it is in use at once.

    Raises StatusConflict when somebody else's change came first, or with the reason why it cannot.
    """
    assert revision.deployment is not None
    deployment = locked(revision.deployment.pk)
    revision = Revision.objects.select_for_update().get(pk=revision.pk)
    running = deployment.jobs.filter(revision=revision, kind=JobKind.CHANGE).first()
    if revision.state == RevisionState.APPLYING and running is not None:
        return running
    _check_turn(deployment, revision)
    ahead = look_ahead(revision)
    if ahead.way == REFUSED:
        raise StatusConflict(ahead.why)
    audit.note(actor, "deployment.apply", deployment, after={"revision": revision.number})
    if ahead.way in (STORED, NOTHING):
        take(deployment, revision)
        return None
    revision.state = RevisionState.APPLYING
    revision.save(update_fields=["state"])
    record(
        Sentence(
            _("Revision %(number)s is applied, asked for by %(by)s."),
            number=revision.number,
            by=str(actor),
        ),
        deployment=deployment,
    )
    job = jobs.create(deployment, JobKind.CHANGE, by=str(actor))
    job.state = {"way": ahead.way.value, "live": ahead.way == LIVE}
    job.revision = revision
    job.save(update_fields=["state", "revision"])
    return job


def _check_turn(deployment: Deployment, revision: Revision) -> None:
    if revision.state not in (RevisionState.PROPOSED, RevisionState.FAILED):
        raise StatusConflict(
            Sentence(_("Revision %(number)s was applied already."), number=revision.number)
        )
    applying = deployment.revisions.filter(state=RevisionState.APPLYING).first()
    if applying is not None:
        raise StatusConflict(
            Sentence(
                _("Revision %(number)s is being applied; wait for it."), number=applying.number
            )
        )
    if revision.replaces_id != deployment.revision_id:
        raise StatusConflict(
            Sentence(
                _("%(name)s was changed since this was entered; look at the difference again."),
                name=deployment.name,
            )
        )
    busy = deployment.jobs.filter(kind=JobKind.MOVE, status__in=["queued", "running"]).exists()
    if busy:
        raise StatusConflict(
            Sentence(_("%(name)s is being moved to another node; wait."), name=deployment.name)
        )


def back_to(revision: Revision, actor: Actor) -> Job | None:
    """The settings of an earlier revision again, as a new one, applied."""
    assert revision.deployment is not None
    known = {name: value for name, value in revision.values.items() if name in ENGINE}
    again = propose(
        revision.deployment,
        known,
        revision.content,
        actor=actor,
        why=f"r{revision.number}",
        origin=RevisionOrigin.ROLLBACK,
    )
    return apply(again, actor)


def take(deployment: Deployment, revision: Revision) -> None:
    """It is the one in use from now on: settings, model and fallback are its. The caller holds the
    row lock."""
    deployment.revisions.filter(state=RevisionState.CURRENT).exclude(pk=revision.pk).update(
        state=RevisionState.PAST
    )
    revision.state, revision.outcome = RevisionState.CURRENT, Sentence()
    revision.applied_at = timezone.now()
    revision.save(update_fields=["state", "outcome", "applied_at"])
    deployment.settings, deployment.revision = revision.values, revision
    deployment.model = Model.objects.get(name=revision.content["model"])
    Deployment.objects.filter(pk=deployment.pk).update(
        settings=revision.values, revision=revision, model=deployment.model
    )
    _take_fallback(deployment, revision.content.get("fallback"))


def _take_fallback(deployment: Deployment, told: Mapping[str, Any] | None) -> None:
    if told is None:
        Fallback.objects.filter(deployment=deployment).delete()
        return
    fields = {name: told[name] for name in FALLBACK if name in told}
    model = Model.objects.filter(name=told["model"]).first() if told.get("model") else None
    Fallback.objects.update_or_create(deployment=deployment, defaults={**fields, "model": model})


def refuse(revision: Revision, why: Sentence) -> None:
    """It was tried and is not in use."""
    Revision.objects.filter(pk=revision.pk).update(state=RevisionState.FAILED, outcome=why)


def _next_number(deployment: Deployment) -> int:
    last = deployment.revisions.aggregate(last=Max("number"))["last"]
    return (last or 0) + 1


def _differing(before: Revision, after: Revision, *, old: bool) -> dict[str, Any]:
    one = before if old else after
    found: dict[str, Any] = {
        setting.name: (was if old else now)
        for setting, was, now in ENGINE.changes(before.values, after.values)
    }
    return found | {
        name: one.content.get(name)
        for name in ("model", "fallback")
        if before.content.get(name) != after.content.get(name)
    }
