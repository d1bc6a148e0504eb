"""Before anything is touched: the node is emptied, and all that must be in order is looked at."""

from django.utils.translation import gettext_noop as _

from dashboard.choices import DeploymentStatus, NodeStatus, UpdateState
from dashboard.firmware.bmc import bmc_of
from dashboard.firmware.inventory import read_bmc
from dashboard.lifecycle import evacuation, updates
from dashboard.models import Deployment, FirmwarePart, Node, NodeUpdate
from dashboard.models.firmware import Channel
from dashboard.sentences import Sentence
from dashboard.updates import attributes, patience, service, speed
from dashboard.updates.base import Go, Outcome, UpdateFailed, Wait
from dashboard.updates.redfish import RUNNING, UpdateClient, listed, path_in
from dashboard.updates.verifying import problem_of_image

SERVING = (DeploymentStatus.READY, DeploymentStatus.DEGRADED)


def drain(update: NodeUpdate) -> Outcome:
    """Everything that runs there has moved."""
    speed.remember(update)
    found = evacuation.clear(update.node)
    if not found.done:
        return Wait(patience.POLL, found.left)
    return Go(UpdateState.PRECHECK, Sentence(_("Nothing runs there.")), patience.PRECHECK)


def precheck(update: NodeUpdate) -> Outcome:
    problem = _problem_of_others(update)
    if problem is not None:  # It may be on its way up; the deadline ends this.
        return Wait(patience.POLL, problem)
    if update.node.status != NodeStatus.ONLINE:  # Nobody could tell that it came back well.
        raise UpdateFailed(
            Sentence(_("The agent of %(node)s is offline; start it."), node=update.node.name)
        )
    part = part_of(update)
    if part.channel == Channel.REDFISH:
        _check_bmc(update)
        part = part_of(update)
    if not part.updatable:
        words = _("%(part)s says that it cannot be updated now.")
        raise UpdateFailed(Sentence(words, part=part.name))
    problem = problem_of_image(update.rollout.image, by_node=part.channel == Channel.FWUPD)
    if problem is not None:
        raise UpdateFailed(problem)
    update.from_version = part.active
    update.save(update_fields=["from_version"])
    updates.remember(update, before=_snapshot(update.node))
    return Go(
        UpdateState.UPLOADING,
        Sentence(_("All that must be in order is.")),
        patience.UPLOAD,
    )


def _problem_of_others(update: NodeUpdate) -> Sentence | None:
    """The other boxes carry what this one does not."""
    silent = Deployment.objects.filter(wanted=True).exclude(status__in=SERVING)
    names = ", ".join(silent.values_list("name", flat=True))
    if names:
        words = _("%(names)s does not answer; see to that before another box is taken out.")
        return Sentence(words, names=names)
    others = Node.objects.exclude(pk=update.node_id)
    away = others.exclude(status=NodeStatus.ONLINE).filter(schedulable=True)
    if Deployment.objects.filter(wanted=True).exists() and away.exists():
        names = ", ".join(away.values_list("name", flat=True))
        words = _("%(names)s is offline, so too few boxes would be left.")
        return Sentence(words, names=names)
    return None


def _check_bmc(update: NodeUpdate) -> None:
    source = bmc_of(update.node)
    if source is None:
        words = _("%(node)s has no BMC among its sources; enter it there.")
        raise UpdateFailed(Sentence(words, node=update.node.name))
    with UpdateClient(source) as bmc:
        if any(bmc.task(path).state in RUNNING for path in bmc.tasks()):
            words = _("The BMC of %(node)s is at another task; wait for its end.")
            raise UpdateFailed(Sentence(words, node=update.node.name))
        _check_power(update, bmc)
        service.check(update, bmc)
        updates.remember(update, attributes=attributes.read(bmc))
    read_bmc(update.node)


def _check_power(update: NodeUpdate, bmc: UpdateClient) -> None:
    """A supply that says it is not well is no moment for firmware; what is not told is trusted."""
    for member in listed(bmc.get("/redfish/v1/Chassis"))[:8]:
        path = path_in(member)
        power = bmc.get(f"{path}/Power").body if path else None
        supplies = (power or {}).get("PowerSupplies")
        for supply in supplies if isinstance(supplies, list) else []:
            status = supply.get("Status") if isinstance(supply, dict) else None
            if isinstance(status, dict) and status.get("Health") == "Critical":
                words = _("A power supply of %(node)s is in a critical state; see to it first.")
                raise UpdateFailed(Sentence(words, node=update.node.name))


def part_of(update: NodeUpdate) -> FirmwarePart:
    part = FirmwarePart.objects.filter(node=update.node_id, key=update.part_key).first()
    if part is None:
        words = _("%(node)s no longer lists the component %(part)s.")
        raise UpdateFailed(Sentence(words, node=update.node.name, part=update.part_key))
    return part


def _snapshot(node: Node) -> dict[str, object]:
    """What must be there afterwards as well."""
    inventory = node.inventory or {}
    return {
        "boot": inventory.get("boot_id", ""),
        "accelerators": len(inventory.get("accelerators") or []),
        "link": node.link_address,
        "versions": {part.key: part.active for part in node.firmware.all()},
    }
