"""The image goes to the BMC, or an order to the agent. What cannot be repeated is written down
before it is done: whoever takes over asks what came of it, and sends nothing twice."""

import time

from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.choices import UpdateState
from dashboard.firmware import store
from dashboard.firmware.bmc import bmc_of
from dashboard.firmware.errors import BmcError
from dashboard.firmware.inventory import read_bmc
from dashboard.lifecycle import updates
from dashboard.models import FirmwarePart, NodeUpdate
from dashboard.models.firmware import Channel
from dashboard.sentences import Sentence
from dashboard.updates import patience, service
from dashboard.updates.base import Go, Outcome, UpdateFailed, Wait
from dashboard.updates.leaving import part_of
from dashboard.updates.redfish import RUNNING, Away, Refused, Reply, UpdateClient, task_path
from dashboard.updates.service import Offer

SENDING = _("The image is sent to the BMC.")
LOST = _(
    "The image was being sent when the worker was lost, and the BMC shows no trace of it. Look at "
    "the BMC, then make a new update."
)
CUT = _("The BMC went away while the image was sent: %(why)s Look at it, then make a new update.")

UNREADABLE = _("The image cannot be read from the panel's store: %(reason)s.")
NOT_TAKEN = _("The BMC does not take the image: %(why)s")


def upload(update: NodeUpdate) -> Outcome:
    part = part_of(update)
    if part.channel in (Channel.FWUPD, Channel.NPU):
        return _order(update)
    if "sent" in update.memory:
        return _went(_("The BMC took the image."))
    if "intent" in update.memory:
        return _take_up(update)
    return _send(update, part)


def _went(words: str) -> Go:
    return Go(UpdateState.APPLYING, Sentence(words), patience.APPLY)


def _order(update: NodeUpdate) -> Outcome:
    """The agent fetches and installs by itself; its reports come with all else it says."""
    if "path" not in update.memory:
        image = update.rollout.image
        path = store.one_use_path(image, update) if store.is_here(image) else ""
        updates.remember(update, path=path, asked=timezone.now().timestamp())
    report = update.memory.get("order") or {}
    if report.get("phase") in (None, "fetching", "checking"):
        outbox.nudge(update.node_id)
        return Wait(patience.POLL, Sentence(_("The agent fetches it.")), report.get("percent"))
    return _went(_("The agent has it."))


def _send(update: NodeUpdate, part: FirmwarePart) -> Outcome:
    source = bmc_of(update.node)
    if source is None:
        words = _("%(node)s has no BMC among its sources; enter it there.")
        raise UpdateFailed(Sentence(words, node=update.node.name))
    with UpdateClient(source) as bmc:
        offer = service.offer(bmc)
        target = part.details.get("path") or f"{service.PATH}/FirmwareInventory/{part.key[8:]}"
        body = service.parameters(update, offer, target)
        updates.remember(update, intent=timezone.now().timestamp(), push=bool(offer.push))
        try:
            hand_over = _push if offer.push else _fetch
            reply = hand_over(bmc, offer, update, body)
        except Away as error:
            raise UpdateFailed(Sentence(CUT, why=Sentence(error.reason))) from error
        except Refused as error:
            raise UpdateFailed(Sentence(NOT_TAKEN, why=error.reason)) from error
        task = task_path(reply) or _running(bmc)
    updates.remember(update, sent=True, task=task)
    return _went(_("The BMC took the image."))


def _push(bmc: UpdateClient, offer: Offer, update: NodeUpdate, body: dict[str, object]) -> Reply:
    if update.rollout.allow_downgrade:
        body |= {"ForceUpdate": True}
    image = update.rollout.image
    shown = time.monotonic()

    def show(percent: float) -> None:
        nonlocal shown
        if time.monotonic() - shown > patience.POLL:
            shown = time.monotonic()
            updates.tell(update, Sentence(SENDING), percent)

    name = store.plain_name(image.name)
    try:
        return bmc.push(offer.push, body, store.path_of(image), name, show)
    except OSError as error:  # Nothing was sent: it is the file that is not to be had.
        words = Sentence(UNREADABLE, reason=error.strerror or "?")
        raise UpdateFailed(words) from error


def _fetch(bmc: UpdateClient, offer: Offer, update: NodeUpdate, body: dict[str, object]) -> Reply:
    """The BMC fetches it from us, at an address that is good once."""
    url = store.one_use_url(update.rollout.image, update)
    scheme = "HTTPS" if url.startswith("https") else "HTTP"
    return bmc.post(offer.action, {"ImageURI": url, "TransferProtocol": scheme, **body})


def _take_up(update: NodeUpdate) -> Outcome:
    """A worker was lost while it sent: the BMC knows what it got."""
    source = bmc_of(update.node)
    if source is None:
        raise UpdateFailed(Sentence(LOST))
    try:
        with UpdateClient(source) as bmc:
            task = _running(bmc)
        if not task:
            read_bmc(update.node)
    except (Away, BmcError) as error:  # Its deadline ends this.
        words = _("Whether the BMC got the image is not known yet: %(why)s")
        return Wait(patience.POLL, Sentence(words, why=str(error)))
    if task:
        updates.remember(update, sent=True, task=task)
        return _went(_("The BMC is at it already."))
    part = part_of(update)
    if update.to_version in (part.active, part.staged):
        updates.remember(update, sent=True, task="")
        return _went(_("The BMC has taken it already."))
    raise UpdateFailed(Sentence(LOST))


def _running(bmc: UpdateClient) -> str:
    """The task that it is at; there was none before the image was sent."""
    return next((path for path in bmc.tasks() if bmc.task(path).state in RUNNING), "")
