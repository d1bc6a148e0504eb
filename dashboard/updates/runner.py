"""Takes an update from state to state. Safe to call twice: a ticket counts once."""

import logging

from django.db import OperationalError, connection
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard.choices import UpdateState
from dashboard.errors import StatusConflict, TandemError
from dashboard.lifecycle import updates
from dashboard.models import NodeUpdate
from dashboard.sentences import Sentence
from dashboard.updates import applying, ending, leaving, uploading
from dashboard.updates.base import Complete, Go, UpdateFailed, Wait
from monitoring.probes.outside import SourceError

log = logging.getLogger(__name__)

STEPS = {
    UpdateState.DRAINING: leaving.drain,
    UpdateState.PRECHECK: leaving.precheck,
    UpdateState.UPLOADING: uploading.upload,
    UpdateState.APPLYING: applying.apply,
    UpdateState.AWAITING_RESET: ending.await_reset,
    UpdateState.REBOOTING: ending.reboot,
    UpdateState.VALIDATING: ending.validate,
}
LATE = _("It took longer than allowed; last seen: %(last)s")
TOO_OFTEN = _("Its worker was lost %(count)s times; look at the worker's log.")


def run(update_id: int, ticket: int) -> None:
    update = updates.claim(update_id, ticket)
    if update is None:
        return
    try:
        _check_losses(update)
        _advance(update)
    except StatusConflict as error:
        # Somebody cancelled it, or another worker has taken it up: it is theirs now.
        log.info("The firmware update of %s goes on elsewhere: %s", update.node, error)
    except TandemError as error:
        _hold(update, error.sentence)
    except SourceError as error:
        _hold(update, Sentence(error.reason))
    except OperationalError:
        connection.close_if_unusable_or_obsolete()
        updates.look_again(update, 1.0)
        raise


def _hold(update: NodeUpdate, why: Sentence) -> None:
    log.warning("The firmware update of %s is held: %s", update.node, why)
    try:
        updates.hold(update, why)
    except StatusConflict as error:
        log.info("The firmware update of %s goes on elsewhere: %s", update.node, error)


def _advance(update: NodeUpdate) -> None:
    """One step, or several where none has to wait."""
    for _step in range(len(STEPS)):
        outcome = STEPS[UpdateState(update.state)](update)
        match outcome:
            case Wait(seconds, text, percent):
                _check_deadline(update, text)
                updates.tell(update, text, percent)
                updates.look_again(update, seconds)
                return
            case Complete(text):
                updates.complete(update, text)
                return
            case Go(to, text, deadline):
                updates.move(update, to, text, deadline=deadline)


def _check_losses(update: NodeUpdate) -> None:
    """Before the step: it may be the step that kills its workers."""
    if update.resumes > updates.MAX_RESUMES:
        raise UpdateFailed(Sentence(TOO_OFTEN, count=update.resumes))


def _check_deadline(update: NodeUpdate, text: Sentence) -> None:
    if update.deadline_at is not None and timezone.now() > update.deadline_at:
        raise UpdateFailed(Sentence(LATE, last=text))
