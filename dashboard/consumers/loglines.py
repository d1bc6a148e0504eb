"""Lines from engine processes, agents and kernels: kept in bounds, shown live."""

from dashboard import outbox
from dashboard.models import LogLine, Replica
from dashboard.texts import storable
from engine.logs import read_line, redact
from engine.protocol.agent import LogLines

MOST_LINES = 500
"""Of one message; an engine that talks faster loses the oldest of these."""
MOST_SHOWN = 100
MOST_CHARACTERS = 2000
OF_THE_NODE = ("agent", "kernel")
"""Keys of lines that belong to no launch."""


def keep_lines(node_id: int, message: LogLines) -> None:
    """Store a batch and show it to whoever watches the deployment.

    Lines of a launch that has nothing on this node are dropped: nobody could find them.
    """
    if not message.launch and message.key in OF_THE_NODE:
        _store(node_id, message, message.key)
        return
    replica = Replica.objects.filter(launch=message.launch).first()
    if replica is None or node_id not in _nodes(replica):
        return
    source = message.key.rpartition(":")[2][:60]
    lines = _store(node_id, message, source)
    outbox.announce_log(replica.deployment_id, source, lines[-MOST_SHOWN:])


def _store(node_id: int, message: LogLines, source: str) -> list[str]:
    """What was stored, as people read it."""
    rows = []
    for line in message.lines[-MOST_LINES:]:
        told = read_line(storable(line))
        rows.append(
            LogLine(
                node_id=node_id,
                launch=message.launch,
                source=source,
                level=told.level,
                request=told.request_id[:64],
                text=redact(told.text)[:MOST_CHARACTERS],
            )
        )
    LogLine.objects.bulk_create(rows)
    return [row.text for row in rows]


def _nodes(replica: Replica) -> set[int]:
    return {replica.head_node_id, *replica.ranks.values_list("node_id", flat=True)}
