"""Lines from engine processes: kept in bounds, shown live."""

from dashboard import outbox
from dashboard.models import LogLine, Replica
from engine.protocol.agent import LogLines

MOST_LINES = 500
"""Of one message; an engine that talks faster loses the oldest of these."""
MOST_SHOWN = 100
MOST_CHARACTERS = 2000


def keep_lines(node_id: int, message: LogLines) -> None:
    """Store a batch and show it to whoever watches the deployment.

    Lines of a launch that has nothing on this node are dropped: nobody could find them.
    """
    replica = Replica.objects.filter(launch=message.launch).first()
    if replica is None or node_id not in _nodes(replica):
        return
    source = message.key.rpartition(":")[2][:60]
    lines = [line.replace("\x00", "")[:MOST_CHARACTERS] for line in message.lines[-MOST_LINES:]]
    LogLine.objects.bulk_create(
        LogLine(launch=message.launch, source=source, text=line) for line in lines
    )
    outbox.announce_log(replica.deployment_id, source, lines[-MOST_SHOWN:])


def _nodes(replica: Replica) -> set[int]:
    return {replica.head_node_id, *replica.ranks.values_list("node_id", flat=True)}
