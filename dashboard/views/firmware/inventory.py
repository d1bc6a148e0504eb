"""What every box has: components and boxes in one table, and each box on a page of its own."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from dashboard.audit import actor_of
from dashboard.firmware.bmc import bmc_of
from dashboard.firmware.errors import BmcError, ImageRefused
from dashboard.firmware.fitting import differences, fits
from dashboard.firmware.images import from_offer
from dashboard.firmware.inventory import read_bmc
from dashboard.firmware.matrix import columns, in_order, rows
from dashboard.models import FirmwareImage, FirmwarePart, Node, TestedSet
from dashboard.models.firmware import Channel
from dashboard.views.access import hidden_of, may_operate, operator_required

SHOWN = 4
"""Boxes side by side; more do not fit a page, and are chosen."""
OLD = timedelta(hours=3)


def nodes_of(request: HttpRequest) -> QuerySet[Node]:
    """Those that this person may see."""
    return Node.objects.exclude(pk__in=hidden_of(request).nodes)


@login_required
@require_safe
def inventory(request: HttpRequest) -> HttpResponse:
    nodes = sorted(nodes_of(request), key=lambda node: (node.simulated, node.name))
    wanted = request.GET.getlist("box")
    real = [node for node in nodes if not node.simulated]
    chosen = [node for node in nodes if node.name in wanted] or real or nodes
    shown = _with_firmware(chosen[:SHOWN])
    sets = list(TestedSet.objects.all())
    table = columns(shown, sets)
    lines = rows(table)
    return render(
        request,
        "firmware/inventory.html",
        {
            "columns": table,
            "rows": lines,
            "differing": sum(row.differs for row in lines),
            "staged": sum(bool(part.staged) for column in table for part in column.parts),
            "offered": sum(bool(part.available) for column in table for part in column.parts),
            "no_offers": _no_offers([part for column in table for part in column.parts]),
            "sets": sets,
            "boxes": nodes,
            "chosen": {node.pk for node in shown},
            "most": SHOWN,
            "old": timezone.now() - OLD,
        },
    )


def _no_offers(parts: Sequence[FirmwarePart]) -> str:
    """Why nobody can say what is offered; empty where some box can."""
    fwupd = [part for part in parts if part.channel == Channel.FWUPD]
    if any(part.available for part in parts) or any(part.active for part in fwupd):
        return ""
    reasons = [part.reason for part in fwupd if part.reason]
    return str(reasons[0]) if reasons else _("No box has told yet what fwupd offers it.")


def _with_firmware(nodes: Sequence[Node]) -> list[Node]:
    held = {
        node.pk: node
        for node in Node.objects.filter(pk__in=[node.pk for node in nodes]).prefetch_related(
            "firmware"
        )
    }
    return [held[node.pk] for node in nodes if node.pk in held]


@login_required
@require_safe
def firmware_node(request: HttpRequest, name: str) -> HttpResponse:
    node = get_object_or_404(nodes_of(request).prefetch_related("firmware"), name=name)
    parts = in_order(node.firmware.all())
    images = list(FirmwareImage.objects.all())
    return render(
        request,
        "firmware/node.html",
        {
            "node": node,
            "parts": [
                (part, [i for i in images if fits(i.component, i.fits, part)]) for part in parts
            ],
            "sets": [(held, differences(held.versions, parts)) for held in TestedSet.objects.all()],
            "bmc": _bmc_state(node),
            "read_at": _newest(parts),
            "may_operate": may_operate(request),
        },
    )


def _bmc_state(node: Node) -> str:
    """`none`, `there`, or why its password cannot be used."""
    try:
        return "there" if bmc_of(node) else "none"
    except BmcError as error:
        return str(error)


def _newest(parts: Sequence[FirmwarePart]) -> datetime | None:
    return max((part.read_at for part in parts), default=None)


@operator_required
@require_POST
def firmware_read(request: HttpRequest, name: str) -> HttpResponse:
    """Ask the BMC now, within its own deadlines."""
    node = get_object_or_404(nodes_of(request), name=name)
    try:
        parts = read_bmc(node)
    except BmcError as error:
        messages.error(request, str(error))
    else:
        words = _("%(node)s's BMC lists %(count)s components.")
        messages.success(request, words % {"node": node.name, "count": len(parts)})
    return redirect("firmware-node", node.name)


@operator_required
@require_POST
def firmware_offer(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    """Make an image of what fwupd offers for a part."""
    node = get_object_or_404(nodes_of(request), name=name)
    part = get_object_or_404(node.firmware.select_related("node"), pk=pk)
    try:
        image = from_offer(part, actor_of(request))
    except ImageRefused as refused:
        messages.error(request, str(refused))
        return redirect("firmware-node", node.name)
    messages.success(request, _("%(image)s is among the images.") % {"image": image})
    return redirect("firmware-image", image.pk)
