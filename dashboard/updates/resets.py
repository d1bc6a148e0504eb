"""Having a BMC restart the node, or itself."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_noop as _

from dashboard.choices import Component
from dashboard.firmware.bmc import bmc_of
from dashboard.models import NodeUpdate
from dashboard.models.firmware import Channel
from dashboard.sentences import Sentence
from dashboard.updates.base import UpdateFailed
from dashboard.updates.leaving import part_of
from dashboard.updates.redfish import Away, Refused, UpdateClient, listed, path_in

__all__ = ["FORCED", "ORDERLY", "ask", "of_bmc_itself"]

ORDERLY = ("GracefulRestart", "ForceRestart", "PowerCycle")
FORCED = ("ForceRestart", "PowerCycle", "GracefulRestart")


def of_bmc_itself(update: NodeUpdate) -> bool:
    """The node goes on meanwhile."""
    part = part_of(update)
    return part.channel == Channel.REDFISH and part.component == Component.BMC


def ask(update: NodeUpdate, kinds: Sequence[str]) -> None:
    """For the first kind that the BMC knows. Raises UpdateFailed when it does not want to."""
    source = bmc_of(update.node)
    if source is None:
        raise UpdateFailed(Sentence(_("The BMC was removed from the node's sources meanwhile.")))
    itself = of_bmc_itself(update)
    collection = "/redfish/v1/Managers" if itself else "/redfish/v1/Systems"
    noun = "Manager" if itself else "ComputerSystem"
    try:
        with UpdateClient(source) as bmc:
            path = _member(bmc, collection, source.url)
            target, kind = _action(bmc.get(path).body or {}, path, noun, kinds)
            bmc.post(target, {"ResetType": kind})
    except Away:
        pass  # It may be restarting already; what comes of it is waited for.
    except Refused as error:
        words = (
            _("The BMC does not restart itself: %(why)s")
            if itself
            else _("The BMC does not restart the node: %(why)s")
        )
        raise UpdateFailed(Sentence(words, why=error.reason)) from error


def _member(bmc: UpdateClient, collection: str, url: str) -> str:
    """The only member; where a BMC manages several, its address does not say which is meant."""
    paths = [path_in(one) for one in listed(bmc.get(collection))]
    if not paths or not paths[0]:
        raise UpdateFailed(Sentence(_("The BMC lists nothing that can be restarted.")))
    if len(paths) > 1:
        words = _("The BMC at %(url)s manages %(count)s systems; which is this node is not known.")
        raise UpdateFailed(Sentence(words, url=url, count=len(paths)))
    return str(paths[0])


def _action(
    resource: dict[str, Any], path: str, noun: str, kinds: Sequence[str]
) -> tuple[str, str]:
    actions = resource.get("Actions")
    told = actions.get(f"#{noun}.Reset") if isinstance(actions, dict) else None
    told = told if isinstance(told, dict) else {}
    target = told.get("target")
    known = told.get("ResetType@Redfish.AllowableValues")
    allowed = [kind for kind in kinds if not isinstance(known, list) or kind in known]
    if not isinstance(target, str) or not target.startswith("/"):
        target = f"{path}/Actions/{noun}.Reset"
    return target, (allowed or list(kinds))[0]
