"""Reset, reboot, and the proof that the box is what it was, with the new version."""

from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import audit, canary
from dashboard.canary import CanaryError
from dashboard.choices import (
    ANSWERING_REPLICA_STATUSES,
    LIVE_REPLICA_STATUSES,
    NodeStatus,
    UpdateState,
)
from dashboard.firmware.errors import BmcError
from dashboard.firmware.inventory import read_bmc
from dashboard.lifecycle import evacuation, updates
from dashboard.models import Deployment, Node, NodeUpdate
from dashboard.models.firmware import Channel
from dashboard.sentences import Sentence
from dashboard.updates import attributes, patience, resets, speed
from dashboard.updates.base import Complete, Go, Outcome, UpdateFailed, Wait
from dashboard.updates.leaving import part_of
from monitoring.probes.outside import SourceError


def await_reset(update: NodeUpdate) -> Outcome:
    """By itself, unless it was to be activated later: then a person says when."""
    if update.rollout.on_reset and not update.memory.get("reset_asked"):
        return Wait(30.0, Sentence(_("It is staged. Reset the node when it suits.")))
    return Go(UpdateState.REBOOTING, Sentence(_("The reset begins.")), patience.REBOOT)


def reboot(update: NodeUpdate) -> Outcome:
    part = part_of(update)
    by_bmc = part.channel == Channel.REDFISH
    if "reset" not in update.memory:
        updates.remember(update, reset=timezone.now().timestamp())
        if by_bmc:
            resets.ask(update, resets.ORDERLY)
        return Wait(patience.POLL, Sentence(_("It restarts.")))
    report = update.memory.get("reboot") or {}
    if report.get("phase") == "failed":
        reason = report["reason"]
        raise UpdateFailed(Sentence.unpack(reason["message"], reason["params"]))
    outcome = _bmc_back(update) if resets.of_bmc_itself(update) else _node_back(update)
    if by_bmc and isinstance(outcome, Wait):
        _insist(update)
    return outcome


def _insist(update: NodeUpdate) -> None:
    """Once: an orderly restart may never come, or its worker was lost before it asked for it."""
    waited = timezone.now().timestamp() - update.memory["reset"]
    if waited > patience.GRACE.total_seconds() and "forced" not in update.memory:
        updates.remember(update, forced=True)
        resets.ask(update, resets.FORCED)
        updates.note(update, Sentence(_("It did not restart by itself: the restart is forced.")))


def _bmc_back(update: NodeUpdate) -> Outcome:
    """The node goes on while its BMC starts anew."""
    try:
        read_bmc(update.node)
    except BmcError:
        return Wait(patience.POLL, Sentence(_("The BMC starts anew.")))
    if part_of(update).active != update.to_version:
        return Wait(patience.POLL, Sentence(_("The inventory does not show it yet.")))
    return Go(UpdateState.VALIDATING, Sentence(_("The BMC is back.")), patience.VALIDATE)


def _node_back(update: NodeUpdate) -> Outcome:
    node = Node.objects.get(pk=update.node_id)
    before = (update.memory.get("before") or {}).get("boot", "")
    boot = (node.inventory or {}).get("boot_id", "")
    since = datetime.fromtimestamp(update.memory["reset"], tz=timezone.now().tzinfo)
    fresh = node.connected_at is not None and node.connected_at > since
    changed = boot != before if before and boot else fresh
    if node.status == NodeStatus.ONLINE and fresh and changed:
        return Go(UpdateState.VALIDATING, Sentence(_("The node is back.")), patience.VALIDATE)
    return Wait(patience.POLL, Sentence(_("Waiting for the node to come back.")))


def validate(update: NodeUpdate) -> Outcome:
    node = Node.objects.get(pk=update.node_id)
    if "serving" in update.memory:
        return _canary(update, node)
    problem = _not_as_it_was(update, node)
    if problem is not None:
        return problem
    attributes.compare(update)
    if update.memory.get("was_out"):
        words = _("%(version)s runs. It stays out of service, as it was before.")
        return Complete(Sentence(words, version=update.to_version))
    updates.remember(update, serving=timezone.now().timestamp())
    evacuation.give_back(node, audit.PANEL)
    return Wait(patience.POLL, Sentence(_("All is there; work comes back for a try.")))


def _not_as_it_was(update: NodeUpdate, node: Node) -> Outcome | None:
    """What is still missing, as something to wait for; the deadline makes it a failure."""
    if node.status != NodeStatus.ONLINE:
        return Wait(patience.POLL, Sentence(_("Waiting for the agent.")))
    if part_of(update).channel == Channel.REDFISH:
        try:
            read_bmc(node)
        except (BmcError, SourceError) as error:
            return Wait(patience.POLL, Sentence(_("The BMC: %(why)s"), why=str(error)))
    part = part_of(update)
    if part.active != update.to_version:
        words = _("%(part)s runs %(active)s, not %(wanted)s.")
        return Wait(
            patience.POLL,
            Sentence(words, part=part.name, active=part.active or "?", wanted=update.to_version),
        )
    before = update.memory.get("before") or {}
    seen = len((node.inventory or {}).get("accelerators") or [])
    if seen < int(before.get("accelerators") or 0):
        words = _("%(seen)s of %(all)s accelerators are seen.")
        return Wait(patience.POLL, Sentence(words, seen=seen, all=before["accelerators"]))
    if before.get("link") and node.link_address != before["link"]:
        return Wait(patience.POLL, Sentence(_("The cable to the other box is not up.")))
    slower = speed.problem_of_link(update, node)
    return Wait(patience.POLL, slower) if slower is not None else None


def _canary(update: NodeUpdate, node: Node) -> Outcome:
    """What comes back to the node answers as it should."""
    waited = timezone.now().timestamp() - update.memory["serving"]
    launches = evacuation.on_node(node, tuple(LIVE_REPLICA_STATUSES))
    ready = [one for one in launches if one.status in ANSWERING_REPLICA_STATUSES]
    if not ready:
        if waited > patience.CANARY.total_seconds() or not _wanted_here():
            words = _("%(version)s runs. Nothing was placed there, so no answer was tried.")
            return Complete(Sentence(words, version=update.to_version))
        return Wait(patience.POLL, Sentence(_("Waiting for a launch to come back.")))
    replica = ready[0]
    try:
        measured = canary.measure(replica, replica.deployment.name)
    except CanaryError as error:
        if waited > patience.CANARY.total_seconds():
            words = _("What runs there does not answer as it should: %(why)s")
            raise UpdateFailed(Sentence(words, why=str(error))) from error
        return Wait(patience.POLL, Sentence(_("No answer yet: %(problem)s"), problem=str(error)))
    model = replica.model or replica.deployment.model
    problem = canary.verdict(measured, None, vocabulary=model.shape.vocab_size, same_model=True)
    if problem is not None:
        raise UpdateFailed(problem)
    slow = speed.problem_of_engine(update, node, replica, measured)
    if slow is not None:
        # It may still be warming up, or be busy.
        if waited > patience.CANARY.total_seconds():
            raise UpdateFailed(slow)
        return Wait(patience.POLL, slow)
    words = _("%(version)s runs, and what came back answers as it should.")
    return Complete(Sentence(words, version=update.to_version))


def _wanted_here() -> bool:
    return Deployment.objects.filter(wanted=True).exists()
