"""History: one event row per change, announced on commit."""

from django.utils.functional import Promise
from django.utils.translation import override

from dashboard import outbox
from dashboard.choices import EventLevel
from dashboard.models import Deployment, Event, Node, Replica
from dashboard.sentences import Sentence


def record(
    sentence: Sentence,
    *,
    level: EventLevel = EventLevel.INFO,
    deployment: Deployment | None = None,
    replica: Replica | None = None,
    node: Node | None = None,
) -> Event:
    event = Event.objects.create(
        level=level,
        deployment=deployment,
        replica=replica,
        node=node,
        message=sentence.message,
        params=sentence.pack()["params"],
    )
    if deployment is not None:
        outbox.announce("deployment", deployment.pk)
    if node is not None:
        outbox.announce("node", node.pk)
    return event


def label(choice: str | Promise) -> Sentence:
    """A status label as a part of a sentence, translated with it."""
    with override("en"):
        return Sentence(str(choice))
