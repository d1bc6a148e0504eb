"""What an agent is to install, as part of its node's desired state, and what it tells of it."""

from collections.abc import Sequence

from dashboard.choices import UNDERWAY_UPDATE_STATES, UpdateState
from dashboard.lifecycle import updates
from dashboard.lifecycle.tickets import at_work
from dashboard.models import Node, NodeUpdate
from dashboard.models.firmware import Channel
from dashboard.sentences import Sentence
from engine.protocol.firmware import FirmwareOrder, FirmwareState


def orders_for(node: Node) -> list[FirmwareOrder]:
    """At most one."""
    update = (
        node.updates.filter(state__in=updates.ORDERING)
        .select_related("rollout__image", "part")
        .first()
    )
    if update is None or update.part is None or "asked" not in update.memory:
        return []
    if update.state == UpdateState.REBOOTING:
        # A number of its own: the order to install has been carried out under the other one.
        return [FirmwareOrder(id=-update.pk, channel="reboot")]
    image = update.rollout.image
    return [
        FirmwareOrder(
            id=update.pk,
            channel="fwupd" if update.part.channel == Channel.FWUPD else "npu",
            key=update.part_key,
            path=update.memory.get("path", ""),
            sha256=image.sha256,
            size=image.size,
            version=update.to_version,
            allow_older=update.rollout.allow_downgrade,
        )
    ]


def heed(node_id: int, states: Sequence[FirmwareState]) -> None:
    """Keep what the agent says of its orders, and look at their updates at once."""
    for state in states:
        going = NodeUpdate.objects.filter(state__in=UNDERWAY_UPDATE_STATES - {UpdateState.HELD})
        update = going.filter(pk=abs(state.id), node_id=node_id).first()
        if update is None:
            continue
        name = "reboot" if state.id < 0 else "order"
        report = {
            "phase": state.phase,
            "percent": state.percent,
            "reason": Sentence.of(state.reason).pack(),
        }
        if update.memory.get(name) != report:
            updates.remember(update, **{name: report})
            if not at_work(update.ticket):
                updates.look_again(update, 0.0)
