"""The BMC or the agent is at it: judged by the task's state, then by the inventory, never by
either's word alone."""

from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard.choices import UpdateState
from dashboard.firmware.bmc import bmc_of
from dashboard.firmware.errors import BmcError
from dashboard.firmware.inventory import read_bmc
from dashboard.lifecycle import updates
from dashboard.models import NodeUpdate
from dashboard.models.firmware import Channel
from dashboard.sentences import Sentence
from dashboard.updates import patience
from dashboard.updates.base import Go, Outcome, UpdateFailed, Wait
from dashboard.updates.leaving import part_of
from dashboard.updates.redfish import (
    GOOD,
    NEEDS_PERSON,
    RUNNING,
    Away,
    Task,
    UpdateClient,
)
from monitoring.probes.outside import SourceError

STAGED = _("It is staged, and runs after a reset.")
AT_IT = _("The BMC is at it.")


def apply(update: NodeUpdate) -> Outcome:
    if part_of(update).channel in (Channel.FWUPD, Channel.NPU):
        return _by_agent(update)
    if "judge" in update.memory:
        return _judge(update)
    path = update.memory.get("task", "")
    if not path:
        return _over(update, _("The BMC named no task; its inventory decides."))
    try:
        task = _look(update, path)
    except Away as error:
        return _away(update, error)
    if update.memory.get("away"):
        updates.remember(update, away=None)
    return _heed(update, task)


def _by_agent(update: NodeUpdate) -> Outcome:
    report = update.memory.get("order") or {}
    match report.get("phase"):
        case "failed":
            raise UpdateFailed(_packed(report["reason"]))
        case "staged":
            return Go(UpdateState.AWAITING_RESET, Sentence(STAGED), patience.RESET)
        case "done":
            words = Sentence(_("The agent has installed it."))
            return Go(UpdateState.VALIDATING, words, patience.VALIDATE)
    return Wait(patience.POLL, Sentence(_("The agent installs it.")), report.get("percent"))


def _packed(reason: dict[str, object]) -> Sentence:
    params = reason.get("params")
    return Sentence.unpack(str(reason["message"]), params if isinstance(params, dict) else {})


def _look(update: NodeUpdate, path: str) -> Task:
    source = bmc_of(update.node)
    if source is None:
        raise UpdateFailed(Sentence(_("The BMC was removed from the node's sources meanwhile.")))
    with UpdateClient(source) as bmc:
        return bmc.task(path)


def _heed(update: NodeUpdate, task: Task) -> Outcome:
    if not task.state:
        return _over(update, _("The BMC has forgotten its task; its inventory decides."))
    if task.state in GOOD:
        updates.remember(update, awaits=task.awaits_reset)
        return _over(update, _("The task is completed; its inventory decides."))
    if task.state in RUNNING:
        return _watch(update, task)
    words = (
        _("The BMC waits for a person: %(words)s")
        if task.state in NEEDS_PERSON
        else _("The BMC gave the update up (%(state)s): %(words)s")
    )
    raise UpdateFailed(Sentence(words, state=task.state, words=task.words or "?"))


def _watch(update: NodeUpdate, task: Task) -> Outcome:
    """A task whose percentage stands still for too long hangs."""
    now = timezone.now().timestamp()
    before, since = update.memory.get("percent") or (None, now)
    if task.percent != before:
        updates.remember(update, percent=[task.percent, now])
    elif now - since > patience.STALL.total_seconds():
        words = _("The BMC's task stands still at %(percent)s %% since %(minutes)s min.")
        raise UpdateFailed(
            Sentence(
                words,
                percent="?" if task.percent is None else round(task.percent),
                minutes=round((now - since) / 60),
            )
        )
    elif "percent" not in update.memory:
        updates.remember(update, percent=[task.percent, now])
    text = Sentence(_("The BMC is at it: %(words)s"), words=task.words) if task.words else None
    return Wait(patience.POLL, text or Sentence(AT_IT), task.percent)


def _away(update: NodeUpdate, error: Away) -> Outcome:
    """Many a BMC starts itself anew in the middle."""
    now = timezone.now().timestamp()
    since = update.memory.get("away") or now
    updates.remember(update, away=since)
    if now - since > patience.AWAY.total_seconds():
        words = _("The BMC has not answered for %(minutes)s min: %(why)s")
        raise UpdateFailed(
            Sentence(words, minutes=round((now - since) / 60), why=Sentence(error.reason))
        )
    return Wait(patience.POLL, Sentence(_("The BMC is silent; it may be starting anew.")))


def _over(update: NodeUpdate, words: str) -> Outcome:
    updates.remember(update, judge=timezone.now().timestamp())
    return Wait(0.0, Sentence(words))


def _judge(update: NodeUpdate) -> Outcome:
    """What the inventory shows counts."""
    try:
        read_bmc(update.node)
    except (BmcError, SourceError) as error:
        return _unseen(update, error)
    part = part_of(update)
    if part.active == update.to_version:
        words = Sentence(_("The inventory shows %(version)s."), version=update.to_version)
        return Go(UpdateState.VALIDATING, words, patience.VALIDATE)
    if part.staged == update.to_version or update.memory.get("awaits"):
        return Go(UpdateState.AWAITING_RESET, Sentence(STAGED), patience.RESET)
    if timezone.now().timestamp() - update.memory["judge"] < patience.SETTLE.total_seconds():
        return Wait(patience.POLL, Sentence(_("The inventory does not show it yet.")))
    words = Sentence(
        _("The task ended, but %(part)s still runs %(version)s. Look at the BMC's own log."),
        part=part.name,
        version=part.active or "?",
    )
    raise UpdateFailed(words)


def _unseen(update: NodeUpdate, error: Exception) -> Outcome:
    if timezone.now().timestamp() - update.memory["judge"] > patience.AWAY.total_seconds():
        raise UpdateFailed(Sentence(_("The BMC does not come back: %(why)s"), why=str(error)))
    return Wait(patience.POLL, Sentence(_("The BMC is silent; it may be starting anew.")))
