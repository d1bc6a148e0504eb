"""`manage.py telemetry_bench`: what storing, rolling up and reading cost here, as JSON."""

import json
import time
from argparse import ArgumentParser
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from random import Random
from statistics import median
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction
from django.utils import timezone

from dashboard.models import Node
from monitoring import metrics as m
from monitoring.live.frames import Frame, Layouts
from monitoring.models import Layout
from monitoring.packing import Packer
from monitoring.samples import measured
from monitoring.scopes import Subject
from monitoring.storage.levels import MINUTE, SECOND
from monitoring.storage.partitions import ensure
from monitoring.storage.rollup import roll_up
from monitoring.storage.series import history
from monitoring.storage.store import store

OF_A_DEVICE = (
    m.GPU_UTILIZATION,
    m.GPU_MEMORY_USED,
    m.GPU_MEMORY_TOTAL,
    m.GPU_MEMORY_HEADROOM,
    m.GPU_TEMPERATURE,
    m.GPU_POWER_LIMIT,
    m.GPU_CLOCK,
    m.GPU_THROTTLED,
    m.GPU_ECC_ERRORS,
    m.GPU_XID_ERRORS,
    m.POWER,
    m.ENERGY,
)
NUMBERS = ("nodes", "devices", "seconds", "day", "times")
CHARTED = {metric.name for metric in OF_A_DEVICE[:8]} | {m.POWER.name}
DAY_OF_MINUTES = """
INSERT INTO monitoring_minute
SELECT id, at, 60, 60, array_fill(60, ARRAY[cardinality(v)]), v, v, v, v, v
FROM (
    SELECT l.id, t.at,
        ARRAY(SELECT random() * 1e6 * i FROM generate_series(1, length(l.shapes)) AS i) AS v
    FROM generate_series(%s::timestamptz, %s::timestamptz, interval '1 minute') AS t (at)
    CROSS JOIN monitoring_layout l
    WHERE l.id = ANY(%s) OR l.node_id IS NULL
    ORDER BY t.at, l.id
) AS made
ON CONFLICT DO NOTHING
"""


class Command(BaseCommand):
    help = (
        "Store made-up readings of a fleet, roll them up, read them as charts do, and take it all "
        "back. Needs room for them, and minutes."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--nodes", type=int, default=200)
        parser.add_argument("--devices", type=int, default=8)
        parser.add_argument("--seconds", type=int, default=120, help="of readings to store")
        parser.add_argument("--day", type=int, default=200, help="subjects with a day of minutes")
        parser.add_argument("--times", type=int, default=7, help="that each chart is read")

    def handle(self, *args: Any, **options: Any) -> None:
        for name in NUMBERS:
            if options[name] < 1:
                raise CommandError(f"--{name} must be at least 1.")
        with transaction.atomic():
            told = Bench(**{name: options[name] for name in NUMBERS})
            self.stdout.write(json.dumps(told.run(), indent=2))
            transaction.set_rollback(True)


class Bench:
    def __init__(self, nodes: int, devices: int, seconds: int, day: int, times: int) -> None:
        self.devices, self.seconds, self.day, self.times = devices, seconds, day, times
        self.subjects = nodes * (devices + 1)
        ensure(timezone.now())
        # Just ahead of now, as what comes late takes another way.
        self.end = MINUTE.floor(timezone.now()) + 2 * MINUTE.step
        self.start = self.end - timedelta(seconds=seconds)
        made = [
            Node(name=f"bench-{n}", address="127.0.0.1", token_hash=f"b{n}") for n in range(nodes)
        ]
        self.nodes = [node.pk for node in Node.objects.bulk_create(made)]

    def run(self) -> dict[str, Any]:
        before = _size(SECOND.table)
        rows, took, again = self._store()
        size = (_size(SECOND.table) - before) / rows
        rolled = _timed(lambda: roll_up(self.end))
        minute_size = _size(MINUTE.table) / max(1, _count(MINUTE.table))
        self._day()
        device = Subject("gpu:0", "", node=self.nodes[0])
        return {
            "subjects": self.subjects,
            "numbers_of_a_device": len(OF_A_DEVICE),
            "stored_rows": rows,
            "stored_rows_per_second": round(rows / took),
            "resent_rows_per_second": round(self.subjects / again),
            "bytes_a_second_row": round(size, 1),
            "bytes_a_minute_row": round(minute_size, 1),
            "gigabytes_a_day": round(
                self.subjects * (size * 86_400 + minute_size * 1_440) / 1e9, 2
            ),
            "roll_up_seconds_a_minute": round(rolled / (self.seconds / 60), 3),
            "day_of_one_device_ms": self._chart([device]),
            "day_of_the_fleet_ms": self._chart(
                [Subject("group:gpu", ""), Subject("group:node", "")]
            ),
            "quarter_hour_of_one_box_ms": self._chart(self._box(), minutes=15),
        }

    def _box(self) -> list[Subject]:
        gpus = [f"gpu:{index}" for index in range(self.devices)]
        return [Subject(name, "", node=self.nodes[0]) for name in ("node", *gpus)]

    def _store(self) -> tuple[int, float, float]:
        """Rows written, how long packing and Postgres took, and how long for one second again."""
        draw, rows, took = Random(1).random, 0, 0.0
        known = {node: self._layouts(node) for node in self.nodes}
        for second in range(self.seconds):
            at = self.start + timedelta(seconds=second)
            frames = [self._frame(node, *known[node], at, draw) for node in self.nodes]
            took += _timed(partial(store, frames))
            rows += sum(frame.stored or 0 for frame in frames)
        return rows, took, _timed(partial(store, frames))

    def _layouts(self, node: int) -> tuple[Layouts, list[int]]:
        samples = [
            measured(metric, 0.0, source="bench", scope="accelerator", subject=subject)
            for subject in ("node", *(f"gpu:{index}" for index in range(self.devices)))
            for metric in OF_A_DEVICE
        ]
        layouts, packed = Layouts(), Packer().pack(samples)
        layouts.learn([layout for layout, _numbers in packed])
        return layouts, [layout.number for layout, _numbers in packed]

    def _frame(
        self,
        node: int,
        layouts: Layouts,
        numbers: list[int],
        at: datetime,
        draw: Callable[[], float],
    ) -> Frame:
        told = [(number, tuple(draw() for _metric in OF_A_DEVICE)) for number in numbers]
        return layouts.frame(node, 1, at.timestamp(), told, timezone.now())

    def _day(self) -> None:
        """A day of minutes for some subjects and for the fleet's sums."""
        some = Layout.objects.filter(node__in=self.nodes).order_by("pk")[: self.day]
        pks = list(some.values_list("pk", flat=True))
        with connection.cursor() as cursor:
            cursor.execute(DAY_OF_MINUTES, [self.end - timedelta(days=1), self.end, pks])
            for table in (MINUTE.table, SECOND.table, "monitoring_layout"):
                cursor.execute(f"ANALYZE {table}")

    def _chart(self, subjects: list[Subject], minutes: int = 1440) -> float:
        """Median of some questions, in ms."""
        since = self.end - timedelta(minutes=minutes)
        taken = [
            _timed(lambda: history(subjects, CHARTED, since, self.end))
            for _time in range(self.times)
        ]
        return round(1000 * median(taken), 1)


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _size(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint "
            "FROM pg_partition_tree(%s) WHERE isleaf",
            [table],
        )
        return int(cursor.fetchone()[0])


def _count(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return int(cursor.fetchone()[0])
