"""Costs and return: what was paid, what running costs, what the same tokens cost elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from dashboard.audit import actor_of, note
from dashboard.forms.energy import OutlayForm, PriceListForm
from dashboard.ledger import Ledger, SpanName, Sum, open_ledger
from dashboard.views.access import hidden_of, may_operate, operator_required
from dashboard.views.monitor.tables import Cell, csv_table
from dashboard.views.trail import note_form
from monitoring.accounts import costs as sums
from monitoring.accounts.costs import ENTER_CLOUD, NO_LINE, Payback, Use
from monitoring.models import Outlay

WINDOW: SpanName = "month"
"""Thirty days stand for how the boxes are used."""


@dataclass(frozen=True)
class Step:
    """One sum with what it was worked out from."""

    label: str
    how: str
    value: Decimal | None
    reason: str = ""
    total: bool = False


@login_required
@require_GET
@never_cache
def costs(request: HttpRequest) -> HttpResponse:
    return _page(request)


@operator_required
@require_POST
@transaction.atomic
def outlay_add(request: HttpRequest) -> HttpResponse:
    form = OutlayForm(request.POST)
    if not form.is_valid():
        return _page(request, form)
    outlay = form.save()
    note_form(request, "outlay.add", str(outlay), form)
    messages.success(request, _("It is part of the sum."))
    return redirect("monitor-costs")


@operator_required
@require_POST
@transaction.atomic
def outlay_remove(request: HttpRequest, pk: int) -> HttpResponse:
    outlay = get_object_or_404(Outlay, pk=pk)
    note(actor_of(request), "outlay.remove", str(outlay), before={"what": str(outlay)})
    outlay.delete()
    messages.success(request, _("It is no longer part of the sum."))
    return redirect("monitor-costs")


@login_required
@require_GET
@never_cache
def costs_table(request: HttpRequest) -> HttpResponse:
    ledger = open_ledger(WINDOW, hidden=hidden_of(request))
    _use, found = _payback(ledger)
    return csv_table(
        "costs", ["sum", "how", f"{ledger.prices.currency}", "reason"], _rows(ledger, found)
    )


def _rows(ledger: Ledger, found: Payback) -> Iterator[list[Cell]]:
    for step in _steps(ledger, found):
        yield [step.label, step.how, step.value, step.reason]
    yield [_("Paid back on"), "", found.on.isoformat() if found.on else None, _reason(found)]


def _page(request: HttpRequest, form: OutlayForm | None = None) -> HttpResponse:
    ledger = open_ledger(WINDOW, hidden=hidden_of(request))
    use, found = _payback(ledger)
    vat = ledger.prices.vat
    return render(
        request,
        "monitor/costs.html",
        {
            "ledger": ledger,
            "currency": ledger.prices.currency,
            "payback": found,
            "reason": _reason(found),
            "missing": [_(sentence) for sentence in found.missing],
            "steps": _steps(ledger, found),
            "use": use,
            "outlays": [(row, row.outlay(vat).amount) for row in Outlay.objects.all()],
            "outlay_form": form or OutlayForm(),
            "outlay_open": form is not None,
            "prices_form": PriceListForm(instance=ledger.prices),
            "may_operate": may_operate(request),
        },
        status=422 if form else 200,
    )


def _reason(found: Payback) -> str:
    """Why there is no date."""
    if found.missing:
        return " ".join(_(sentence) for sentence in found.missing)
    return _(found.reason) if found.reason else ""


def _payback(ledger: Ledger) -> tuple[Use, Payback]:
    vat = ledger.prices.vat
    outlays = [row.outlay(vat) for row in Outlay.objects.all()]
    total = ledger.total() if ledger.boxes else None
    use = Use(
        _seen_days(ledger),
        ledger.tokens.prompt,
        ledger.tokens.generated,
        total.priced if total and ledger.tariff_known else None,
        _covered_days(ledger, total),
    )
    found = sums.payback(outlays, ledger.prices.cloud, use, tariff_known=ledger.tariff_known)
    return use, found


def _seen_days(ledger: Ledger) -> Decimal:
    """Of the window, from the first reading on: a fleet of yesterday was not idle for a month."""
    times = [at for _node, at in ledger.boxes] + [at for _launch, at in ledger.work]
    if not times:
        return Decimal(0)
    return Decimal(str(ledger.window.until.timestamp() - min(times))) / 86_400


def _covered_days(ledger: Ledger, total: Sum | None) -> Decimal:
    """Of all boxes that tell anything, on average."""
    boxes = {node for node, _at in ledger.boxes}
    if total is None or not boxes:
        return Decimal(0)
    return Decimal(str(total.covered)) / len(boxes) / 86_400


def _steps(ledger: Ledger, found: Payback) -> list[Step]:
    """Every sum, in the order in which it is made."""
    return [
        Step(
            _("Bought"),
            _("All purchases together"),
            found.purchases,
            _(sums.ENTER_PURCHASE) if found.purchases is None else "",
        ),
        Step(
            _("Other service, a day"),
            _tokens_how(ledger),
            found.cloud_a_day,
            _cloud_reason(ledger, found),
        ),
        Step(
            _("Electricity, a day"),
            _electricity_how(ledger),
            found.electricity_a_day,
            _electricity_reason(ledger, found),
        ),
        Step(
            _("Upkeep, a day"),
            _("What is paid by the month ÷ 30.44, by the year ÷ 365.25"),
            found.upkeep_a_day if found.upkeep_a_day else None,
            "" if found.upkeep_a_day else _("None was entered, so none is counted."),
        ),
        Step(
            _("Saved, a day"),
            _("Other service − electricity − upkeep"),
            found.saved_a_day,
            _reason(found) if found.saved_a_day is None else "",
            total=True,
        ),
    ]


def _tokens_how(ledger: Ledger) -> str:
    cloud = ledger.prices.cloud
    if cloud is None:
        return _("Tokens × their price ÷ days")
    return _(
        "(%(prompt)s tokens read × %(in)s + %(generated)s written × %(out)s) ÷ 1,000,000 ÷ "
        "%(days)s days"
    ) % {
        "prompt": f"{ledger.tokens.prompt:,.0f}",
        "generated": f"{ledger.tokens.generated:,.0f}",
        "in": f"{cloud.prompt:.4f}",
        "out": f"{cloud.generated:.4f}",
        "days": f"{_seen_days(ledger):.2f}",
    }


def _cloud_reason(ledger: Ledger, found: Payback) -> str:
    if found.cloud_a_day is not None:
        return ""
    return _(ENTER_CLOUD) if ledger.prices.cloud is None else _(sums.NO_TOKENS)


def _electricity_how(ledger: Ledger) -> str:
    total = ledger.total() if ledger.boxes else None
    if total is None or not ledger.tariff_known:
        return _("Energy × tariff ÷ days")
    return _("%(amount)s for %(kwh)s kWh ÷ %(days)s days of readings") % {
        "amount": f"{total.priced.amount:.2f}",
        "kwh": f"{total.priced.kwh:.3f}",
        "days": f"{_covered_days(ledger, total):.2f}",
    }


def _electricity_reason(ledger: Ledger, found: Payback) -> str:
    if found.electricity_a_day is not None:
        return ""
    if not ledger.tariff_known:
        return _(sums.ENTER_TARIFF)
    return _(NO_LINE) if ledger.boxes else _(sums.NO_METER)


urlpatterns = [
    path("costs/", costs, name="monitor-costs"),
    path("costs/outlays/", outlay_add, name="outlay-add"),
    path("costs/outlays/<int:pk>/remove/", outlay_remove, name="outlay-remove"),
    path("costs/costs.csv", costs_table, name="costs-table"),
]
