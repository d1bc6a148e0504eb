"""A box that comes back slower than it was is not taken for well."""

from datetime import timedelta

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from dashboard import canary
from dashboard.canary import Measured
from dashboard.choices import ReplicaStatus, UpdateState
from dashboard.lifecycle import evacuation, updates
from dashboard.models import Node, NodeUpdate, Replica
from dashboard.updates import ending, speed
from dashboard.updates.base import Complete, Outcome, UpdateFailed, Wait
from monitoring.models import Layout, Minute, NodeLimits, Reading
from tests.dashboard.pages_cast import make_launch, make_smol
from tests.dashboard.update_cast import Pair, both_labs, pair, shortened

__all__ = ["both_labs", "pair", "shortened"]

MHZ = 1e6
GBIT = 1e9


def measured(per_token: float) -> Measured:
    return Measured(nats=3.0, first_token=0.1, per_token=per_token)


def layout_of(node: Node, subject: str, metric: str, label: str) -> Layout:
    fields = [
        ["power_watts", "watts", "nvml", "measured", "accelerator", "", ""],
        [metric, "", "nvml", "measured", "", "", label],
    ]
    return Layout.objects.create(
        node=node, subject=subject, digest=f"{subject} {metric}", fields=fields, shapes="gg"
    )


def read(layout: Layout, value: float, ago: timedelta = timedelta()) -> None:
    Reading.objects.create(layout=layout, at=timezone.now() - ago, numbers=[30.0, value])


def rolled_up(layout: Layout, high: float) -> None:
    columns = {name: [None, high] for name in ("low", "mean", "high", "last", "gain")}
    Minute.objects.create(
        layout=layout,
        at=timezone.now() - timedelta(hours=3),
        rows=60,
        covered=60.0,
        n=[60, 60],
        **columns,
    )


def equip(node: Node, *accelerators: str) -> None:
    inventory = Node.objects.get(pk=node.pk).inventory or {}
    found = [{"name": name} for name in accelerators or ("GB10",)]
    Node.objects.filter(pk=node.pk).update(inventory={**inventory, "accelerators": found})


@pytest.fixture
def launched(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> tuple[NodeUpdate, Replica]:
    """Something has come back to a box that is being validated."""
    equip(pair.a)
    rollout = pair.draft(parts=pair.parts("BIOS")[:1])
    update = rollout.updates.select_related("rollout__image", "node").get()
    replica = make_launch(make_smol(), pair.a)
    Replica.objects.filter(pk=replica.pk).update(status=ReplicaStatus.READY)

    def there(node: Node, statuses: tuple[str, ...]) -> QuerySet[Replica]:
        return Replica.objects.filter(pk=replica.pk).select_related("deployment__model")

    monkeypatch.setattr(evacuation, "on_node", there)
    return update, replica


def answering(monkeypatch: pytest.MonkeyPatch, per_token: float) -> None:
    monkeypatch.setattr(canary, "measure", lambda replica, name: measured(per_token))


def looked_at(update: NodeUpdate, *, since: timedelta = timedelta()) -> Outcome:
    serving = (timezone.now() - since).timestamp()
    updates.remember(update, serving=serving)
    return ending._canary(update, update.node)


def test_an_engine_that_is_as_fast_as_before(
    launched: tuple[NodeUpdate, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, 0.03)
    speed.remember(launched[0])
    assert isinstance(looked_at(launched[0]), Complete)


def test_an_engine_that_stays_slow_holds_the_box(
    launched: tuple[NodeUpdate, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    update, _replica = launched
    answering(monkeypatch, 0.03)
    speed.remember(update)
    answering(monkeypatch, 0.4)
    speed.remember(update)
    words = "It takes 0.4 s a token, and 0.03 before."
    outcome = looked_at(update)
    assert isinstance(outcome, Wait)
    assert str(outcome.text).startswith(words)
    with pytest.raises(UpdateFailed, match=words):
        looked_at(update, since=timedelta(hours=1))


def test_an_accelerator_whose_clock_stays_low_holds_the_box(
    launched: tuple[NodeUpdate, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    update, _replica = launched
    answering(monkeypatch, 0.03)
    layout = layout_of(update.node, "gpu:0", "gpu_clock_hertz", "sm")
    rolled_up(layout, 2400 * MHZ)
    speed.remember(update)
    updates.remember(update, serving=(timezone.now() - timedelta(hours=1)).timestamp())
    read(layout, 610 * MHZ)
    with pytest.raises(UpdateFailed, match="gpu:0 stays at 610 MHz under load, and reached 2400"):
        ending._canary(update, update.node)
    NodeLimits.objects.create(node=update.node, wanted={"clock_hertz": 600 * MHZ})
    assert isinstance(ending._canary(update, update.node), Complete)
    NodeLimits.objects.all().delete()
    read(layout, 2300 * MHZ, timedelta(seconds=5))
    assert isinstance(ending._canary(update, update.node), Complete)


def test_a_box_without_accelerators_is_as_fast_as_its_other_work_lets_it(
    launched: tuple[NodeUpdate, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    update, _replica = launched
    inventory = {**(update.node.inventory or {}), "accelerators": []}
    Node.objects.filter(pk=update.node_id).update(inventory=inventory)
    update.node.refresh_from_db()
    answering(monkeypatch, 0.03)
    speed.remember(update)
    answering(monkeypatch, 0.4)
    assert isinstance(looked_at(update), Complete)


def test_what_was_never_read_is_not_compared(
    launched: tuple[NodeUpdate, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    update, _replica = launched
    answering(monkeypatch, 0.03)
    speed.remember(update)
    read(layout_of(update.node, "gpu:0", "gpu_clock_hertz", "sm"), 610 * MHZ)
    assert isinstance(looked_at(update, since=timedelta(hours=1)), Complete)


def test_a_cable_that_comes_up_slower_is_waited_for(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = layout_of(pair.a, "node", "link_speed_bits_per_second", "enp1s0f0")
    read(layout, 200 * GBIT)
    real = speed.remember

    def remember(update: NodeUpdate) -> None:
        real(update)
        read(layout, 10 * GBIT, -timedelta(seconds=1))

    monkeypatch.setattr(speed, "remember", remember)
    pair.approved(parts=pair.parts("BIOS")[:1])
    words = "The cable runs at 10.0 Gbit/s, and did at 200.0 before."
    pair.until(lambda: str(pair.update(pair.a).reason) == words)
    read(layout, 200 * GBIT, -timedelta(seconds=2))
    pair.until_state(pair.a, UpdateState.RELEASED)
