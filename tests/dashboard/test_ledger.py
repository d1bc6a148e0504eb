"""The books against what meters and engines counted, by hand."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import msgspec
import pytest
from django.utils import timezone

from dashboard import ledger as ledger_module
from dashboard.ledger import SpanName, Window, open_ledger
from dashboard.models import Deployment, Node, Replica
from engine.protocol.agent import Accelerator
from monitoring.accounts.energy import NO_ENERGY, per_token
from monitoring.metrics import ENERGY
from monitoring.models import PriceList, TariffRate
from monitoring.samples import Sample
from monitoring.scopes import Subject
from monitoring.storage.series import Gain
from tests.dashboard.pages_cast import HARDWARE
from tests.monitoring.cast import launch, make_node
from tests.monitoring.metered import energy, keep, tokens, whole_minutes_ago

pytestmark = pytest.mark.django_db

SECONDS = 10 * 60


def serving(name: str = "l1", boxes: int = 2) -> tuple[Deployment, datetime]:
    """Box n draws 100 (n + 1) W at the wall; 4 tokens/s are written and 2 read. For ten minutes,
    which begin with a bucket of five."""
    start = whole_minutes_ago(16)
    start -= timedelta(seconds=start.timestamp() % 300)
    nodes = [make_node(f"box-{index + 1}") for index in range(boxes)]
    deployment = launch(name, nodes)
    Replica.objects.update(created=start - timedelta(hours=1))
    for index, node in enumerate(nodes):
        watts = 100.0 * (index + 1)
        keep(
            node,
            start,
            (
                (
                    second,
                    [
                        energy(7e6 + watts * second),
                        energy(3e6 + 60.0 * second, "accelerator", subject="gpu:0"),
                        *(tokens(name, 100 + 2 * second, 500 + 4 * second) if not index else []),
                    ],
                )
                for second in range(0, SECONDS + 1, 5)
            ),
        )
    return deployment, start


def test_joules_for_a_token_are_the_difference_of_all_counters() -> None:
    """(100 + 200) W for 4 tokens a second: 75 J a token."""
    deployment, _start = serving()
    ledger = open_ledger("day")
    account = ledger.accounts[deployment.pk]
    found = per_token(account, ledger.idle)
    counted_joules = 300.0 * account.tokens.generated / 4
    assert account.joules == pytest.approx(counted_joules)
    assert account.tokens.generated >= 4 * (SECONDS - 300)
    assert found.generated == pytest.approx(75.0)
    assert found.any == pytest.approx(50.0)
    assert account.bases == {"wall"}
    assert account.kind == "derived"


def test_the_fleets_energy_is_that_of_the_plugs_alone() -> None:
    serving()
    total = open_ledger("day").total()
    assert total.joules == pytest.approx(300.0 * SECONDS, rel=1e-3)
    assert total.bases == {"wall"}
    assert total.kind == "measured"


def test_a_box_without_a_meter_leaves_the_token_without_joules() -> None:
    deployment, _start = serving(boxes=1)
    replica = deployment.replicas.get()
    replica.ranks.create(rank=1, stage=0, stage_rank=1, node=make_node("dark"))
    ledger = open_ledger("day")
    found = per_token(ledger.accounts[deployment.pk], ledger.idle)
    assert (found.generated, found.reason) == (None, NO_ENERGY)
    assert ledger.total().joules > 0


def test_a_box_without_a_plug_is_told_by_its_accelerators_and_that_is_said() -> None:
    node = make_node("box-1")
    chip = Accelerator(index=0, vendor="nvidia", name="H100")
    node.inventory = msgspec.to_builtins(msgspec.structs.replace(HARDWARE, accelerators=[chip]))
    node.save()
    start = whole_minutes_ago(12)
    keep(
        node,
        start,
        (
            (second, [energy(50.0 * second, "accelerator", subject="gpu:0")])
            for second in range(0, 601, 5)
        ),
    )
    total = open_ledger("day").total()
    assert total.joules == pytest.approx(30_000)
    assert total.bases == {"accelerators"}
    assert "Accelerators only" in total.basis_words[0]


def test_a_meter_that_starts_over_loses_nothing_it_counted_afterwards() -> None:
    """120 s at 100 W, then from nothing for 120 s at 100 W."""
    node, start = make_node("box-1"), whole_minutes_ago(8)
    keep(
        node,
        start,
        ((s, [energy(5e6 + 100 * s if s < 120 else 100.0 * (s - 120))]) for s in range(241)),
    )
    assert open_ledger("day").total().joules == pytest.approx(100 * 239)


def test_what_ran_during_a_gap_is_not_guessed_and_not_covered() -> None:
    """Readings for 60 s, none for 120 s, readings for 60 s: 100 W are known for 120 s alone."""
    node, start = make_node("box-1"), whole_minutes_ago(8)
    seconds = [*range(61), *range(180, 241)]
    keep(node, start, ((s, [energy(100.0 * s)]) for s in seconds))
    total = open_ledger("day").total()
    assert total.joules == pytest.approx(12_000)
    assert total.covered == pytest.approx(120, abs=2)


def test_energy_is_priced_by_the_tariff_of_its_hour() -> None:
    serving(boxes=1)
    PriceList(currency="EUR", vat_percent=Decimal(20), vat_entered=False).save()
    TariffRate.objects.create(
        since=date(2020, 1, 1), begins=time(0), ends=time(0), price=Decimal("0.50")
    )
    ledger = open_ledger("day")
    total = ledger.total()
    assert float(total.priced.amount) == pytest.approx(total.joules / 3.6e6 * 0.6)
    assert total.priced.unpriced == 0
    [account] = ledger.accounts.values()
    part = ledger.cost_of(account)
    assert float(part.amount) == pytest.approx(account.joules / 3.6e6 * 0.6)


def test_periods_without_a_reading_are_there_without_a_value() -> None:
    serving(boxes=1)
    periods = open_ledger("week").by_period()
    assert len(periods) in (7, 8)
    assert periods[0][1] is None
    assert periods[-1][1] is not None or periods[-2][1] is not None


def test_a_window_is_whole_steps_that_end_with_the_one_that_runs() -> None:
    now = datetime(2026, 11, 27, 10, 7, 30, tzinfo=UTC)
    window = Window.up_to(now, "day", 2)
    assert window.since == datetime(2026, 11, 26, 10, 10, tzinfo=UTC)
    assert window.until == now


@pytest.mark.parametrize(
    ("name", "boxes", "minutes"),
    [("day", 2, 5), ("day", 200, 30), ("week", 200, 60), ("month", 200, 1440), ("year", 5, 60)],
)
def test_a_large_fleet_is_read_in_longer_steps(name: SpanName, boxes: int, minutes: int) -> None:
    now = datetime(2026, 11, 27, 10, 7, 30, tzinfo=UTC)
    assert Window.up_to(now, name, boxes).step == timedelta(minutes=minutes)


def test_an_empty_fleet_has_empty_books() -> None:
    ledger = open_ledger("month", timezone.now())
    assert not ledger.boxes
    assert ledger.total().joules == 0
    assert ledger.total().bases == frozenset()
    assert ledger.idle_share is None
    assert ledger.coverage(0.0, 0) is None


def simulated(name: str = "sim-1") -> Node:
    node = make_node(name)
    node.inventory = msgspec.to_builtins(msgspec.structs.replace(HARDWARE, simulated=True))
    node.save()
    keep(node, whole_minutes_ago(12), ((s, [energy(1e6 * s)]) for s in range(0, 601, 5)))
    return node


def test_what_is_made_up_does_not_count_beside_what_is_real() -> None:
    simulated()
    serving()
    ledger = open_ledger("day")
    assert ledger.total().joules == pytest.approx(300.0 * SECONDS, rel=1e-3)
    assert {node.name for node in ledger.nodes.values()} == {"box-1", "box-2"}
    assert (ledger.simulated, ledger.left_out) == (False, 1)


def test_a_fleet_of_simulated_nodes_alone_has_books_that_say_so() -> None:
    simulated()
    ledger = open_ledger("day")
    assert ledger.total().joules == pytest.approx(6e8)
    assert (ledger.simulated, ledger.left_out) == (True, 0)


def test_meters_of_the_same_minutes_do_not_keep_accelerators_from_being_asked() -> None:
    """Wall, host and each of two plugs are known for the first third of the time alone."""
    node = make_node("box-1")
    chip = Accelerator(index=0, vendor="nvidia", name="H100")
    node.inventory = msgspec.to_builtins(msgspec.structs.replace(HARDWARE, accelerators=[chip]))
    node.save()
    now = timezone.now()
    window = Window("day", now - timedelta(minutes=15), now, timedelta(minutes=5))
    begin = window.since.timestamp()
    meters = [
        Gain(f"{node.pk}/node", ENERGY.name, scope, label, "measured", begin, 1e3, 400.0)
        for scope, label in (("wall", ""), ("wall", "a"), ("wall", "b"), ("host", ""))
    ]
    asked: list[str] = []

    def gains(subjects: list[Subject], *_: object) -> list[Gain]:
        asked.extend(subject.role for subject in subjects)
        return list(meters) if subjects[0].role == "node" else []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger_module, "gains", gains)
        ledger_module._boxes([node], window)
    assert asked == ["node", "gpu"]


def test_another_meter_does_not_count_what_it_counted_before() -> None:
    """An estimate from 0 stands in for a meter that counts in millions; then the meter is back."""
    node, start = make_node("box-1"), whole_minutes_ago(8)

    def told(second: int) -> list[Sample]:
        if 60 <= second < 120:
            return [energy(100.0 * (second - 60), "host", "estimated")]
        return [energy(5e9 + 100.0 * second, "host")]

    keep(node, start, ((second, told(second)) for second in range(181)))
    assert open_ledger("day").total().joules == pytest.approx(100 * 177, abs=200)
