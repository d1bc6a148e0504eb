"""Saved conversations: one's own only, a turn at a time."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard.choices import MessageRole, MessageStatus
from dashboard.errors import TandemError
from dashboard.models import Conversation, Message
from dashboard.texts import storable

TITLE_LENGTH = 60
LISTED = 200
ABANDONED_AFTER = timedelta(seconds=30)
"""An answer whose writer saved nothing for so long has lost its writer."""
LEFT_AFTER = timedelta(seconds=5)
"""The same, where it costs little to be wrong."""


KEPT = ("content", "reasoning", "status", "error", "metrics", "stream", "launch")


class ConversationMissing(TandemError):
    """There is no such conversation, or it is somebody else's."""


class Busy(TandemError):
    """The conversation is already being answered."""


@dataclass
class Turn:
    """What was asked and the row that takes the answer. `prompt` is OpenAI's message list."""

    conversation: Conversation
    answer: Message
    prompt: list[dict[str, str]]


def of(user: User, pk: int) -> Conversation:
    found = Conversation.objects.filter(user=user, pk=pk).first()
    if found is None:
        raise ConversationMissing(_("This conversation does not exist any more."))
    return found


def search(user: User, words: str = "") -> QuerySet[Conversation]:
    """The newest conversations whose title or text holds `words`."""
    found = Conversation.objects.filter(user=user)
    if words:
        texts = Q(title__icontains=words) | Q(messages__content__icontains=words)
        found = found.filter(texts).distinct()
    return found[:LISTED]


def title_of(text: str) -> str:
    line = " ".join(storable(text).split())
    return line if len(line) <= TITLE_LENGTH else f"{line[: TITLE_LENGTH - 1]}…"


@transaction.atomic
def ask(user: User, pk: int | None, route: str, text: str, system: str) -> Turn:
    """Save the question and an empty answer; a first question starts the conversation."""
    conversation = _locked(user, pk) if pk else Conversation(user=user, title=title_of(text))
    conversation.route = route
    conversation.save()
    _set_system(conversation, system)
    conversation.messages.create(role=MessageRole.USER, content=storable(text))
    return _answered(conversation)


@transaction.atomic
def ask_again(user: User, pk: int, route: str, system: str) -> Turn:
    """Answer the last question once more; the previous answer goes."""
    conversation = _locked(user, pk)
    conversation.route = route
    conversation.save()
    _set_system(conversation, system)
    last = conversation.messages.exclude(role=MessageRole.SYSTEM).last()
    if last is None:
        raise ConversationMissing(_("There is no question to answer yet."))
    if last.role == MessageRole.ASSISTANT:
        last.delete()
    return _answered(conversation)


def keep(answer: Message) -> bool:
    """Save an answer as far as it is, and show that somebody is still writing it.

    False when its conversation was deleted meanwhile.
    """
    fields = {name: getattr(answer, name) for name in KEPT}
    kept = Message.objects.filter(pk=answer.pk).update(**fields)
    Conversation.objects.filter(pk=answer.conversation_id).update(updated=timezone.now())
    return kept == 1


def unfinished(user: User, pk: int) -> Turn | None:
    """An answer that is being written, and that its head may still have."""
    conversation = Conversation.objects.filter(user=user, pk=pk).first()
    if conversation is None:
        return None
    answer = conversation.messages.filter(status=MessageStatus.STREAMING).exclude(stream="").last()
    return None if answer is None else Turn(conversation, answer, [])


def is_left(turn: Turn) -> bool:
    """Whether nobody seems to write it any more."""
    return timezone.now() - turn.conversation.updated > LEFT_AFTER


def close_abandoned(conversation: Conversation) -> None:
    """An answer that lost its writer (a crash, a power cut) is a stopped one."""
    if timezone.now() - conversation.updated > ABANDONED_AFTER:
        conversation.messages.filter(status=MessageStatus.STREAMING).update(
            status=MessageStatus.STOPPED
        )


def _locked(user: User, pk: int) -> Conversation:
    conversation = Conversation.objects.select_for_update().filter(user=user, pk=pk).first()
    if conversation is None:
        raise ConversationMissing(_("This conversation does not exist any more."))
    close_abandoned(conversation)
    if conversation.messages.filter(status=MessageStatus.STREAMING).exists():
        raise Busy(_("This conversation is being answered; stop that or wait for its end."))
    return conversation


def _set_system(conversation: Conversation, system: str) -> None:
    rows = conversation.messages.filter(role=MessageRole.SYSTEM)
    if not system:
        rows.delete()
    elif not rows.update(content=storable(system)):
        conversation.messages.create(role=MessageRole.SYSTEM, content=storable(system))


def _answered(conversation: Conversation) -> Turn:
    prompt = _prompt(conversation)
    answer = conversation.messages.create(
        role=MessageRole.ASSISTANT, status=MessageStatus.STREAMING
    )
    return Turn(conversation, answer, prompt)


def _prompt(conversation: Conversation) -> list[dict[str, str]]:
    """System first, wherever its row is; answers that never began are left out."""
    rows = list(conversation.messages.exclude(content=""))
    rows.sort(key=lambda row: row.role != MessageRole.SYSTEM)
    return [{"role": row.role, "content": row.content} for row in rows]
