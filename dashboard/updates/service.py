"""What a BMC's update service offers, and what it is asked for accordingly."""

from typing import Any

import msgspec
from django.utils.translation import gettext_noop as _

from dashboard.models import NodeUpdate
from dashboard.sentences import Sentence
from dashboard.updates.base import UpdateFailed
from dashboard.updates.redfish import UpdateClient

PATH = "/redfish/v1/UpdateService"
ACTION = f"{PATH}/Actions/UpdateService.SimpleUpdate"
SUPPORT = "@Redfish.OperationApplyTimeSupport"

OFF = _("The update service of %(node)s's BMC is switched off; switch it on there.")
NO_SERVICE = _("The BMC of %(node)s has no update service; update it by its vendor's own tool.")
TOO_LARGE = _("The BMC of %(node)s takes images of up to %(most)s MB, and this one has %(size)s.")
NO_LATER = _(
    "The BMC of %(node)s cannot stage an image for later; make an update without “activate later”."
)
MB = 1e6


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    push: str = ""
    """Where images are pushed to; empty: it fetches them."""
    action: str = ACTION
    times: list[str] | None = None
    """When it can apply an image; None: it does not say."""
    enabled: bool = True
    most_bytes: int | None = None
    there: bool = True


def offer(bmc: UpdateClient) -> Offer:
    reply = bmc.get(PATH)
    document = reply.body if reply.status == 200 else None
    if document is None:
        return Offer(there=False)
    push = document.get("MultipartHttpPushUri")
    push = push if isinstance(push, str) and push.startswith("/") else ""
    simple = _dict(_dict(document.get("Actions")).get("#UpdateService.SimpleUpdate"))
    target = simple.get("target")
    most = document.get("MaxImageSizeBytes")
    support = document.get(f"MultipartHttpPushUri{SUPPORT}") if push else simple.get(SUPPORT)
    times = _dict(support).get("SupportedValues")
    return Offer(
        push=push,
        action=target if isinstance(target, str) and target.startswith("/") else ACTION,
        times=[str(one) for one in times] if isinstance(times, list) else None,
        enabled=document.get("ServiceEnabled") is not False,
        most_bytes=most if isinstance(most, int) and most > 0 else None,
    )


def check(update: NodeUpdate, bmc: UpdateClient) -> None:
    """Before anything is sent. Raises UpdateFailed when it would not be taken."""
    found, node, size = offer(bmc), update.node.name, update.rollout.image.size
    if not found.there:
        raise UpdateFailed(Sentence(NO_SERVICE, node=node))
    if not found.enabled:
        raise UpdateFailed(Sentence(OFF, node=node))
    if found.most_bytes is not None and size > found.most_bytes:
        most = round(found.most_bytes / MB, 1)
        raise UpdateFailed(Sentence(TOO_LARGE, node=node, most=most, size=round(size / MB, 1)))
    if update.rollout.on_reset and found.times is not None and "OnReset" not in found.times:
        raise UpdateFailed(Sentence(NO_LATER, node=node))


def parameters(update: NodeUpdate, found: Offer, target: str) -> dict[str, object]:
    """A time that it does not know is not asked for: then it does as it always does."""
    when = "OnReset" if update.rollout.on_reset else "Immediate"
    body: dict[str, object] = {"Targets": [target]}
    if found.times is None or when in found.times:
        body["@Redfish.OperationApplyTime"] = when
    return body


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
