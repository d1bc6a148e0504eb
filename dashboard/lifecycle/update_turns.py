"""Which worker may advance a firmware update, and what it leaves for the next one."""

from datetime import timedelta

from django.db import transaction
from django.db.models import F, JSONField, Value
from django.db.models.expressions import CombinedExpression
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.choices import UNDERWAY_UPDATE_STATES, UpdateState
from dashboard.lifecycle.tickets import at_work, next_queued, taken
from dashboard.models import NodeUpdate, UpdateNote
from dashboard.sentences import Sentence

RUN_TASK = "tandem.run_update"
GOING = UNDERWAY_UPDATE_STATES - {UpdateState.HELD}
OVERDUE = timedelta(seconds=10)
WORK = {UpdateState.UPLOADING: timedelta(minutes=20)}
"""How long a worker may be at one step before it counts as lost; else `STEP`."""
STEP = timedelta(minutes=3)
MAX_RESUMES = 20


def note(update: NodeUpdate, text: Sentence, by: str = "") -> None:
    """One line of its history; pages that show it are told."""
    UpdateNote.objects.create(update=update, state=update.state, text=text, by=by)
    outbox.announce("update", update.rollout_id)


def claim(update_id: int, ticket: int) -> NodeUpdate | None:
    """The update, if this ticket is the one that may advance it now."""
    now = timezone.now()
    guard = NodeUpdate.objects.filter(pk=update_id, ticket=ticket, state__in=GOING)
    if guard.update(ticket=taken(ticket), touched_at=now, due_at=now) != 1:
        return None
    rows = NodeUpdate.objects.select_related("rollout__image", "node", "part")
    return rows.get(pk=update_id)


def look_again(update: NodeUpdate, seconds: float) -> None:
    """Queue its next run; whatever else was queued for it is void. Nothing, if somebody else has
    queued or taken it up since it was read."""
    ticket = next_queued(update.ticket)
    due = timezone.now() + timedelta(seconds=seconds)
    mine = NodeUpdate.objects.filter(pk=update.pk, ticket=update.ticket)
    if mine.update(ticket=ticket, due_at=due) == 1:
        update.ticket = ticket
        outbox.task(RUN_TASK, update.pk, ticket, countdown=seconds)


def remember(update: NodeUpdate, **found: object) -> None:
    """Written down at once, so that whoever takes over after a crash knows it. Beside what others
    write down meanwhile: the agent's reports come while a worker is at it."""
    update.memory.update(found)
    added = Value(found, JSONField())
    merged = CombinedExpression(F("memory"), "||", added, output_field=JSONField())
    NodeUpdate.objects.filter(pk=update.pk).update(memory=merged)


def resume_overdue() -> None:
    """Queue again what lost its message or its worker."""
    now = timezone.now()
    for update in NodeUpdate.objects.filter(state__in=GOING, due_at__lt=now - OVERDUE):
        patience = WORK.get(UpdateState(update.state), STEP)
        lately = update.due_at is not None and now - update.due_at < patience
        if lately and at_work(update.ticket):
            continue
        _resume(update)


@transaction.atomic
def _resume(update: NodeUpdate) -> None:
    guard = NodeUpdate.objects.filter(pk=update.pk, ticket=update.ticket, state=update.state)
    deadline = update.deadline_at
    if deadline is not None and update.due_at is not None:
        # Time in which no worker was there is not held against the step.
        deadline += timezone.now() - update.due_at
    if guard.update(resumes=update.resumes + 1, deadline_at=deadline) == 1:
        note(update, Sentence(_("Taken up again: its worker or its message was lost.")))
        look_again(update, 0.0)
