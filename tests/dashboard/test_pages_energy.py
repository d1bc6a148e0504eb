"""Energy, noise and costs: every figure with its unit and kind, every absence with its reason."""

import csv
import io
from datetime import date, time, timedelta
from decimal import Decimal

import msgspec
import pytest
from django.test import Client
from django.utils import timezone

from dashboard import outbox
from dashboard.lifecycle import follow_schedule
from dashboard.lifecycle.limits import keep_states
from dashboard.models import Deployment, Replica
from engine.errors import Said
from engine.protocol.agent import LimitState
from monitoring.models import LimitSpan, Outlay, PriceList, QuietRule, TariffRate
from tests.dashboard.pages_cast import body, make_launch, make_model, make_node, operator, viewer
from tests.monitoring.metered import energy, keep, tokens, whole_minutes_ago

__all__ = ["operator", "viewer"]
pytestmark = pytest.mark.django_db

PAGES = ["/monitor/energy/", "/monitor/noise/", "/monitor/costs/"]
TABLES = [
    "/monitor/energy/periods.csv",
    "/monitor/energy/nodes.csv",
    "/monitor/energy/deployments.csv",
    "/monitor/noise/quiet-hours.csv",
    "/monitor/costs/costs.csv",
]
EVERY_DAY = [str(day) for day in range(7)]


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_send", lambda group, message: None)


def metered_launch() -> Deployment:
    """200 W and 4 tokens a second for ten minutes."""
    node = make_node("box-1")
    deployment = Deployment.objects.create(name="smol", model=make_model(), settings={"tp": 1})
    name = make_launch(deployment, node).launch
    start = whole_minutes_ago(16)
    start -= timedelta(seconds=start.timestamp() % 300)
    Replica.objects.update(created=start)
    keep(
        node,
        start,
        ((s, [energy(200.0 * s), *tokens(name, 8.0 * s, 4.0 * s)]) for s in range(0, 601, 5)),
    )
    return deployment


def rate(price: str = "0.36") -> None:
    TariffRate.objects.create(
        since=date(2020, 1, 1), begins=time(0), ends=time(0), price=Decimal(price)
    )


def rows(client: Client, path: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(body(client, path))))


def test_signed_out_one_sees_none_of_it() -> None:
    for path in PAGES + TABLES:
        assert Client().get(path).status_code == 302


@pytest.mark.parametrize("path", PAGES)
def test_a_page_of_an_empty_fleet_has_no_zeros_but_reasons(viewer: Client, path: str) -> None:
    text = body(viewer, path)
    assert 'class="tabs"' in text
    for zero in (">0 <small>", ">0.00 <small>", ">0%", ">0.0 <small>"):
        assert zero not in text


def test_what_a_token_takes_is_shown_with_what_it_is_of(viewer: Client) -> None:
    metered_launch()
    text = body(viewer, "/monitor/energy/?span=day")
    assert "50.0 <small>J</small>" in text  # 200 W / 4 tokens a second.
    assert "16.7 <small>J</small>" in text  # And 8 read.
    assert "At the wall: all that the box draws." in text
    assert 'title="Enter what a kilowatt-hour costs."' in text
    assert 'title="Enter the price of the service you compare with."' in text


def test_cost_of_a_million_tokens_stands_beside_the_other_services(viewer: Client) -> None:
    """50 J a token are 13.89 kWh a million: at 0.36, 5.00. Elsewhere 2 x 1 + 4 = 6."""
    metered_launch()
    rate()
    PriceList(cloud_name="Nimbus", cloud_prompt=Decimal(1), cloud_generated=Decimal(4)).save()
    text = body(viewer, "/monitor/energy/?span=day")
    assert "5.00 <small>EUR</small>" in text
    assert "6.00 <small>EUR</small>" in text
    assert "Nimbus for the same" in text


def test_tables_say_the_same_and_leave_absent_cells_empty(viewer: Client) -> None:
    metered_launch()
    make_node("dark")
    head, *nodes = rows(viewer, "/monitor/energy/nodes.csv?span=day")
    assert head == ["node", "kwh", "cost_EUR", "kind", "covered_seconds", "of"]
    assert nodes[0][0] == "box-1"
    assert float(nodes[0][1]) == pytest.approx(1 / 30, rel=1e-3)
    assert nodes[0][2] == ""
    assert nodes[1][:5] == ["dark", "", "", "unavailable", ""]
    _head, deployment = rows(viewer, "/monitor/energy/deployments.csv?span=day")
    assert float(deployment[4]) == pytest.approx(50)
    assert deployment[7:10] == ["", "", "derived"]
    periods = rows(viewer, "/monitor/energy/periods.csv?span=day")
    assert [row for row in periods if row[3] == "unavailable"]
    assert viewer.get("/monitor/energy/nothing.csv").status_code == 404


def test_a_tariff_is_entered_and_a_line_removed(operator: Client) -> None:
    line = {
        "price": "0.31",
        "name": "Night",
        "since": "2026-01-01",
        "days": EVERY_DAY,
        "begins": "22:00",
        "ends": "06:00",
    }
    answer = operator.post("/monitor/energy/rates/", line, follow=True)
    assert "The line is part of the tariff." in answer.content.decode()
    row = TariffRate.objects.get()
    assert (row.price, row.days) == (Decimal("0.31"), list(range(7)))
    assert "22:00–06:00" in body(operator, "/monitor/energy/")
    operator.post(f"/monitor/energy/rates/{row.pk}/remove/")
    assert not TariffRate.objects.exists()


def test_a_first_line_is_offered_for_the_whole_day_from_today(operator: Client) -> None:
    offered = operator.get("/monitor/energy/").context["rate_form"].initial
    assert offered == {"since": timezone.localdate(), "begins": time.min, "ends": time.min}


def test_a_further_line_is_offered_for_the_tariff_that_is_there(operator: Client) -> None:
    TariffRate.objects.create(
        name="Day", price=Decimal("0.3"), since=date(2026, 1, 1), begins=time(6), ends=time(22)
    )
    offered = operator.get("/monitor/energy/").context["rate_form"].initial
    assert offered["since"] == date(2026, 1, 1)


def test_a_line_that_cannot_be_is_refused_at_its_field(operator: Client) -> None:
    answer = operator.post(
        "/monitor/energy/rates/", {"price": "-1", "since": "2026-01-01", "begins": "9", "ends": ""}
    )
    assert answer.status_code == 422
    assert set(answer.context["rate_form"].errors) == {"price", "days", "begins", "ends"}
    assert "data-open" in answer.content.decode()


def test_prices_are_saved_once_and_for_all(operator: Client) -> None:
    given = {
        "currency": "cny",
        "zone": "Asia/Shanghai",
        "vat_percent": "13",
        "vat_shown": "on",
        "cloud_prompt": "1.5",
        "cloud_generated": "6",
        "back": "costs",
    }
    answer = operator.post("/monitor/energy/prices/", given)
    assert answer["Location"] == "/monitor/costs/"
    operator.post("/monitor/energy/prices/", given | {"vat_percent": "9"})
    kept = PriceList.objects.get()
    assert (kept.currency, kept.zone, kept.vat_percent) == ("CNY", "Asia/Shanghai", Decimal(9))
    assert not kept.vat_entered
    bad = operator.post("/monitor/energy/prices/", given | {"currency": "€"})
    assert bad.status_code == 422


def test_the_day_of_return_is_shown_with_its_sums(operator: Client) -> None:
    metered_launch()
    rate()
    PriceList(cloud_prompt=Decimal(1000), cloud_generated=Decimal(4000)).save()
    operator.post(
        "/monitor/costs/outlays/",
        {"name": "Two boxes", "amount": "8000", "every": "once", "since": "2026-01-01"},
    )
    text = body(operator, "/monitor/costs/")
    assert "8,000.00 <small>EUR</small>" in text or "8000.00 <small>EUR</small>" in text
    assert "tokens read × 1000.0000" in text
    assert "Counted from the first purchase" in text
    last = rows(operator, "/monitor/costs/costs.csv")[-1]
    assert date.fromisoformat(last[2]) > date(2026, 1, 1)
    operator.post(f"/monitor/costs/outlays/{Outlay.objects.get().pk}/remove/")
    assert "Enter what the boxes cost." in body(operator, "/monitor/costs/")


def test_what_was_not_entered_is_asked_for_on_the_costs_page(viewer: Client) -> None:
    text = body(viewer, "/monitor/costs/")
    for sentence in ("Enter what the boxes cost.", "Enter what a kilowatt-hour costs."):
        assert sentence in text


def test_a_use_that_saves_nothing_is_told_so(viewer: Client) -> None:
    metered_launch()
    rate("90")
    PriceList(cloud_prompt=Decimal(1), cloud_generated=Decimal(4)).save()
    Outlay.objects.create(name="boxes", amount=8000, since=date(2026, 1, 1))
    assert "Never at this use" in body(viewer, "/monitor/costs/")


def quiet(**changes: object) -> dict[str, object]:
    return {
        "name": "Nights",
        "days": EVERY_DAY,
        "begins": "22:00",
        "ends": "06:00",
        "zone": "UTC",
        "power_watts": "300",
    } | changes


def test_quiet_hours_are_added_put_off_and_removed(operator: Client) -> None:
    node = make_node("box-1")
    operator.post("/monitor/noise/rules/", quiet(always="on"))
    rule = QuietRule.objects.get()
    assert LimitSpan.objects.filter(node=node, until=None).exists()  # It holds at once.
    text = body(operator, "/monitor/noise/")
    assert "Nights" in text
    assert "300 W an accelerator" in text
    assert "Held back now" in text
    operator.post(f"/monitor/noise/rules/{rule.pk}/off/")
    assert not LimitSpan.objects.filter(until=None).exists()
    assert "Held back now" not in body(operator, "/monitor/noise/")
    operator.post(f"/monitor/noise/rules/{rule.pk}/on/")
    assert LimitSpan.objects.filter(until=None).exists()
    operator.post(f"/monitor/noise/rules/{rule.pk}/remove/")
    assert not QuietRule.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"power_watts": ""}, "power_watts"),
        ({"begins": ""}, "begins"),
        ({"days": []}, "days"),
        ({"zone": "Mars/Base"}, "zone"),
        ({"batch_cap": "0"}, "batch_cap"),
    ],
)
def test_a_rule_that_asks_for_nothing_or_never_is_refused(
    operator: Client, changes: dict[str, object], field: str
) -> None:
    answer = operator.post("/monitor/noise/rules/", quiet(**changes))
    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    assert not QuietRule.objects.exists()


def test_what_holds_why_and_until_when_is_told(viewer: Client) -> None:
    node = make_node("box-1")
    deployment = Deployment.objects.create(name="smol", model=make_model())
    launch = make_launch(deployment, node).launch
    now = timezone.now()
    ends = (now + timedelta(hours=2)).replace(minute=0, second=0, microsecond=0)
    QuietRule.objects.create(
        name="Nights",
        begins=(now - timedelta(hours=2)).time(),
        ends=ends.time(),
        power_watts=300,
        batch_cap=4,
    )
    follow_schedule()
    keep_states(
        node.pk,
        [
            LimitState(what="power", target="gpu:0", value=None, reason=Said("Only root may.")),
            LimitState(what="batch", target=launch, value=4.0),
        ],
    )
    text = body(viewer, "/monitor/noise/")
    assert ends.strftime("%Y-%m-%d %H:%M UTC") in text
    assert "accelerator 0 · power limit" in text
    assert "Only root may." in text
    assert "smol · answers at once" in text


def test_what_quiet_hours_cost_is_not_guessed_from_too_little(viewer: Client) -> None:
    deployment = metered_launch()
    LimitSpan.objects.create(
        node=deployment.replicas.get().head_node,
        since=timezone.now() - timedelta(hours=1),
        until=timezone.now(),
        why="Nights",
    )
    assert "Not enough answers yet" in body(viewer, "/monitor/noise/")
    table = rows(viewer, "/monitor/noise/quiet-hours.csv")
    assert [row[3:5] for row in table[1:]] == [["", ""]]


def test_who_may_only_look_changes_nothing(viewer: Client) -> None:
    for path in (
        "/monitor/energy/prices/",
        "/monitor/energy/rates/",
        "/monitor/costs/outlays/",
        "/monitor/noise/rules/",
    ):
        assert viewer.post(path, quiet()).status_code == 403
    assert "data-dialog" not in body(viewer, "/monitor/noise/")


def test_limits_in_the_rows_are_what_an_agent_is_sent() -> None:
    node = make_node("box-1")
    QuietRule.objects.create(name="Cap", always=True, clock_mhz=1200)
    follow_schedule()
    wanted = node.limits.wanted
    assert msgspec.to_builtins(wanted)["clock_hertz"] == 1.2e9


def test_sums_say_that_simulated_nodes_are_left_out(viewer: Client) -> None:
    metered_launch()
    node = make_node("sim-1")
    node.inventory = (node.inventory or {}) | {"simulated": True}
    node.save()
    for path in ("/monitor/energy/", "/monitor/costs/"):
        text = body(viewer, path)
        assert "Simulated nodes are left out." in text
        assert "badge-simulated" not in text.partition("toolbar")[2].partition("</div>")[0]


def test_sums_of_simulated_nodes_alone_are_labelled(viewer: Client) -> None:
    node = make_node("sim-1")
    node.inventory = (node.inventory or {}) | {"simulated": True}
    node.save()
    for path in ("/monitor/energy/", "/monitor/costs/"):
        text = body(viewer, path)
        assert "badge-simulated" in text
        assert "left out" not in text


def test_what_no_line_of_the_tariff_covers_costs_nothing_known_not_0(viewer: Client) -> None:
    metered_launch()
    TariffRate.objects.create(
        since=timezone.localdate() + timedelta(days=9),
        begins=time(0),
        ends=time(0),
        price=Decimal("0.36"),
    )
    text = body(viewer, "/monitor/energy/")
    assert ">0.00 <small>" not in text
    assert "no line of the tariff holds" in text
