"""Energy: what the boxes draw, what that costs, and what a token takes of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import time
from decimal import Decimal
from typing import cast, get_args
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from dashboard.audit import actor_of, note
from dashboard.forms.energy import PriceListForm, TariffRateForm
from dashboard.forms.week import DAYS
from dashboard.ledger import Ledger, SpanName, Sum, open_ledger
from dashboard.models import Node
from dashboard.views.access import hidden_of, may_operate, operator_required
from dashboard.views.monitor.tables import Cell, csv_table
from dashboard.views.trail import note_form
from monitoring.accounts.costs import (
    ENTER_CLOUD,
    ENTER_TARIFF,
    MILLION,
    NO_LINE,
    NO_METER,
    per_million,
)
from monitoring.accounts.energy import LEAST_TOKENS, Account, PerToken, per_token
from monitoring.models import PriceList, TariffRate


@dataclass(frozen=True)
class Bar:
    label: str
    sum: Sum | None
    height: float
    """Share of the highest."""
    coverage: float | None


@dataclass(frozen=True)
class NodeRow:
    node: Node
    sum: Sum | None
    coverage: float | None


@dataclass(frozen=True)
class DeploymentRow:
    name: str
    account: Account
    takes: PerToken
    cost: Decimal | None
    """Of electricity, for a million tokens written; the tokens read are in it."""
    cost_reason: str
    cloud: Decimal | None
    cloud_reason: str
    coverage: float | None
    """Share of its time in which all its boxes were known."""


@login_required
@require_GET
@never_cache
def energy(request: HttpRequest) -> HttpResponse:
    return _page(request)


@operator_required
@require_POST
@transaction.atomic
def prices(request: HttpRequest) -> HttpResponse:
    form = PriceListForm(request.POST, instance=PriceList.current())
    if not form.is_valid():
        return _page(request, prices=form)
    form.save()
    note_form(request, "tariff.prices", _("Prices"), form)
    messages.success(request, _("The prices are saved."))
    return redirect(_back(request))


@operator_required
@require_POST
@transaction.atomic
def rate_add(request: HttpRequest) -> HttpResponse:
    form = TariffRateForm(request.POST)
    if not form.is_valid():
        return _page(request, rate=form)
    rate = form.save()
    note_form(request, "tariff.add", str(rate), form)
    messages.success(request, _("The line is part of the tariff."))
    return redirect("monitor-energy")


@operator_required
@require_POST
@transaction.atomic
def rate_remove(request: HttpRequest, pk: int) -> HttpResponse:
    rate = get_object_or_404(TariffRate, pk=pk)
    note(actor_of(request), "tariff.remove", str(rate), before={"price": str(rate.price)})
    rate.delete()
    messages.success(request, _("The line is no longer part of the tariff."))
    return redirect("monitor-energy")


@login_required
@require_GET
@never_cache
def energy_table(request: HttpRequest, table: str) -> HttpResponse:
    """`periods`, `nodes` or `deployments` of the page as CSV."""
    ledger = open_ledger(span_of(request), hidden=hidden_of(request))
    tables = {"periods": _periods_csv, "nodes": _nodes_csv, "deployments": _deployments_csv}
    if table not in tables:
        raise Http404
    head, *rows = tables[table](ledger)
    return csv_table(f"energy-{table}-{ledger.window.name}", [str(cell) for cell in head], rows)


def span_of(request: HttpRequest) -> SpanName:
    asked = request.GET.get("span", "week")
    return cast(SpanName, asked) if asked in get_args(SpanName) else "week"


def _back(request: HttpRequest) -> str:
    """Prices stand on two pages."""
    return "monitor-costs" if request.POST.get("back") == "costs" else "monitor-energy"


def _page(
    request: HttpRequest,
    prices: PriceListForm | None = None,
    rate: TariffRateForm | None = None,
) -> HttpResponse:
    ledger = open_ledger(span_of(request), hidden=hidden_of(request))
    total = ledger.total() if ledger.boxes else None
    rows = [_deployment(ledger, pk, account) for pk, account in ledger.accounts.items()]
    return render(
        request,
        "monitor/energy.html",
        {
            "ledger": ledger,
            "span": ledger.window.name,
            "step_minutes": int(ledger.step // 60),
            "spans": spans(),
            "total": total,
            "coverage": ledger.coverage(total.covered, len(ledger.nodes)) if total else None,
            "bars": _bars(ledger),
            "nodes": [_node(ledger, node) for node in ledger.nodes.values()],
            "deployments": [row for row in rows if row is not None],
            "cost_reason": cost_reason(ledger, total),
            "no_meter": _(NO_METER),
            "no_line": _(NO_LINE),
            "currency": ledger.prices.currency,
            "rates": _rates(),
            "prices_form": prices or PriceListForm(instance=ledger.prices),
            "rate_form": rate or TariffRateForm(initial=_next_line(ledger.prices)),
            "prices_open": prices is not None,
            "rate_open": rate is not None,
            "may_operate": may_operate(request),
        },
        status=422 if prices or rate else 200,
    )


def spans() -> list[tuple[SpanName, str]]:
    return [
        ("day", _("24 hours")),
        ("week", _("7 days")),
        ("month", _("30 days")),
        ("year", _("1 year")),
    ]


def cost_reason(ledger: Ledger, total: Sum | None) -> str:
    """Why the energy has no price; empty where it has one."""
    if total is None:
        return _(NO_METER)
    if not ledger.tariff_known:
        return _(ENTER_TARIFF)
    return _(NO_LINE) if total.priced.unpriced and not total.priced.amount else ""


def _bars(ledger: Ledger) -> list[Bar]:
    periods = ledger.by_period()
    most = max((one.priced.kwh for _name, one in periods if one), default=Decimal(0))
    whole = ledger.window.seconds * len(ledger.nodes) / max(1, len(periods))
    return [
        Bar(
            name.partition("-")[2] if ledger.window.name in ("week", "month") else name,
            one,
            float(one.priced.kwh / most) if one and most else 0.0,
            min(1.0, one.covered / whole) if one and whole else None,
        )
        for name, one in periods
    ]


def _node(ledger: Ledger, node: Node) -> NodeRow:
    found = ledger.of_node(node.pk)
    if not found.bases:
        return NodeRow(node, None, None)
    return NodeRow(node, found, ledger.coverage(found.covered, 1))


def _deployment(ledger: Ledger, pk: int, account: Account) -> DeploymentRow | None:
    if pk not in ledger.deployments:
        return None
    takes = per_token(account, ledger.idle)
    seen = account.seconds + account.left_out
    cost, cost_why = _own_cost(ledger, account, takes)
    cloud, cloud_why = _cloud_cost(ledger, account)
    return DeploymentRow(
        ledger.deployments[pk].name,
        account,
        takes,
        cost,
        cost_why,
        cloud,
        cloud_why,
        account.seconds / seen if seen else None,
    )


def _own_cost(ledger: Ledger, account: Account, takes: PerToken) -> tuple[Decimal | None, str]:
    if takes.generated is None:
        return None, _(takes.reason)
    if not ledger.tariff_known:
        return None, _(ENTER_TARIFF)
    priced = ledger.cost_of(account)
    if priced.unpriced > 0:
        return None, _(NO_LINE)
    return per_million(priced.amount, account.tokens.generated), ""


def _cloud_cost(ledger: Ledger, account: Account) -> tuple[Decimal | None, str]:
    """For the same mix of tokens read and written."""
    cloud, tokens = ledger.prices.cloud, account.tokens
    if cloud is None:
        return None, _(ENTER_CLOUD)
    if tokens.generated < LEAST_TOKENS:
        return None, _(per_token(account, {}).reason)
    price = cloud.price(tokens.prompt, tokens.generated)
    return price * MILLION / Decimal(str(tokens.generated)), ""


def _next_line(prices: PriceList) -> dict[str, object]:
    """A line for the whole day; of the newest tariff, since one of a later day would end it."""
    newest = TariffRate.objects.order_by("since").last()
    today = timezone.localdate(timezone=ZoneInfo(prices.zone))
    return {
        "since": newest.since if newest else today,
        "begins": time.min,
        "ends": time.min,
    }


def _rates() -> list[tuple[TariffRate, str]]:
    names = dict(DAYS)
    return [
        (
            rate,
            _("every day") if len(rate.days) == 7 else ", ".join(str(names[d]) for d in rate.days),
        )
        for rate in TariffRate.objects.all()
    ]


def _periods_csv(ledger: Ledger) -> Iterator[list[Cell]]:
    yield ["period", "kwh", f"cost_{ledger.prices.currency}", "kind", "covered_seconds"]
    for name, one in ledger.by_period():
        yield [name, *_figures(ledger, one)]


def _nodes_csv(ledger: Ledger) -> Iterator[list[Cell]]:
    currency = ledger.prices.currency
    yield ["node", "kwh", f"cost_{currency}", "kind", "covered_seconds", "of"]
    for node in ledger.nodes.values():
        found = ledger.of_node(node.pk)
        known = found if found.bases else None
        of = " ".join(found.basis_words) if known else _(NO_METER)
        yield [node.name, *_figures(ledger, known), of]


def _figures(ledger: Ledger, one: Sum | None) -> list[Cell]:
    if one is None:
        return [None, None, "unavailable", None]
    whole = ledger.tariff_known and not one.priced.unpriced
    cost = one.priced.amount if whole else None
    return [one.priced.kwh, cost, one.kind, round(one.covered, 1)]


def _deployments_csv(ledger: Ledger) -> Iterator[list[Cell]]:
    yield [
        "deployment",
        "prompt_tokens",
        "generated_tokens",
        "joules",
        "joules_per_generated_token",
        "joules_per_token",
        "joules_per_generated_token_above_idle",
        f"electricity_{ledger.prices.currency}_per_million_generated_tokens",
        f"compared_{ledger.prices.currency}_per_million_generated_tokens",
        "kind",
        "divided",
        "reason",
    ]
    for pk, account in ledger.accounts.items():
        row = _deployment(ledger, pk, account)
        if row is not None:
            known = account.seconds > 0
            yield [
                row.name,
                round(account.tokens.prompt) if known else None,
                round(account.tokens.generated) if known else None,
                account.joules if known else None,
                row.takes.generated,
                row.takes.any,
                row.takes.above_idle,
                row.cost,
                row.cloud,
                account.kind if row.takes.generated is not None else "unavailable",
                "by tokens" if account.shared else "",
                _(row.takes.reason) if row.takes.reason else "",
            ]


urlpatterns = [
    path("energy/", energy, name="monitor-energy"),
    path("energy/prices/", prices, name="energy-prices"),
    path("energy/rates/", rate_add, name="energy-rate-add"),
    path("energy/rates/<int:pk>/remove/", rate_remove, name="energy-rate-remove"),
    path("energy/<slug:table>.csv", energy_table, name="energy-table"),
]
