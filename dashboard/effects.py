"""What quiet hours did to speed, power and sound: the stored readings, set side by side."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.models import Deployment, Node, Replica
from monitoring.accounts.effects import TOO_FEW_READINGS, Effect, Points, Spans, effect, pooled
from monitoring.metrics import NOISE, POWER, TOKENS_PER_SECOND
from monitoring.models import LimitSpan
from monitoring.noise import energetic_mean
from monitoring.scopes import NOTHING, Hidden, Subject
from monitoring.storage.series import Series, history

WEEK = timedelta(days=7)
WEEKS = 2
POINTS = 20_000
"""More than the minutes of a week, so that none are put together; no more of them are read at once
by the minute."""
MOST_NODES = 16
"""Sound and power of a larger fleet are not told box by box."""
KINDS_THAT_TELL = ("measured", "calibrated", "estimated")
"""A declared level is the same whatever holds."""

SCOPES = {"wall": gettext_lazy("wall"), "host": gettext_lazy("host")}


@dataclass(frozen=True)
class Row:
    what: str
    where: str
    unit: str
    effect: Effect
    better: int
    """1 where more is better, -1 where less is."""
    kind: str = "measured"


@dataclass(frozen=True)
class Effects:
    since: datetime
    rows: list[Row]


def effects(zone: str, hidden: Hidden = NOTHING) -> Effects:
    """Of the last two weeks; without rows where nothing was held back in them."""
    now = timezone.now()
    since, where = now - WEEKS * WEEK, ZoneInfo(zone)
    spans = _spans(since, now)
    if not spans:
        return Effects(since, [])
    shown = Node.objects.filter(pk__in=spans).exclude(pk__in=hidden.nodes)
    nodes = list(shown.order_by("name")[:MOST_NODES])
    rows = _speeds(spans, since, where, hidden) + _boxes(nodes, spans, since, where)
    return Effects(since, rows)


def _spans(since: datetime, now: datetime) -> dict[int, Spans]:
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    rows = LimitSpan.objects.exclude(until__lt=since).filter(since__lt=now)
    for row in rows:
        until = row.until or now
        found[row.node_id].append((row.since.timestamp(), until.timestamp()))
    return dict(found)


def _speeds(
    spans: Mapping[int, Spans], since: datetime, zone: ZoneInfo, hidden: Hidden
) -> list[Row]:
    """Each deployment's generation, while a box of it was held back and otherwise."""
    launches: dict[int, list[Replica]] = defaultdict(list)
    rows = Replica.objects.exclude(ended_at__lt=since).prefetch_related("ranks")
    rows = rows.exclude(deployment__in=hidden.deployments)
    for replica in rows:
        launches[replica.deployment_id].append(replica)
    names = dict(Deployment.objects.filter(pk__in=launches).values_list("pk", "name"))
    found = []
    for deployment, replicas in launches.items():
        nodes = {rank.node_id for replica in replicas for rank in replica.ranks.all()}
        mine = merged([span for node in nodes for span in spans.get(node, ())])
        if not mine or deployment not in names:
            continue
        subjects = [Subject(f"launch:{replica.launch}", "") for replica in replicas]
        past = _past(subjects, [TOKENS_PER_SECOND.name], since)
        points = pooled(points for _series, points in past)
        told = effect(points, mine, zone)
        found.append(Row(_("Generation"), names[deployment], _("tokens/s"), told, 1))
    return found


def _boxes(
    nodes: Sequence[Node],
    spans: Mapping[int, Spans],
    since: datetime,
    zone: ZoneInfo,
) -> list[Row]:
    found = []
    for node in nodes:
        subject = Subject("node", node.name, node=node.pk)
        for series, points in _past([subject], [NOISE.name, POWER.name], since):
            loud = series.metric == NOISE.name
            if series.kind not in KINDS_THAT_TELL or not (loud or series.scope in SCOPES):
                continue
            fold = {"fold": energetic_mean} if loud else {}
            told = effect(points, spans[node.pk], zone, few=TOO_FEW_READINGS, **fold)
            what, unit = (_("Noise"), "dB(A)") if loud else (_("Power"), "W")
            scope = "" if loud else str(SCOPES[series.scope])
            place = " · ".join(part for part in (node.name, scope, series.label) if part)
            found.append(Row(what, place, unit, told, -1, series.kind))
    return found


def _past(
    subjects: Sequence[Subject], metrics: Collection[str], since: datetime
) -> list[tuple[Series, Points]]:
    """Each series as it was last, with its minutes in order."""
    found: dict[tuple[str, str], tuple[Series, list[tuple[float, float]]]] = {}
    for week in range(WEEKS):
        begin = since + week * WEEK
        for series in history(subjects, metrics, begin, begin + WEEK, POINTS).series:
            _before, points = found.get((series.topic, series.key), (series, []))
            for at, value in zip(series.at, series.value, strict=True):
                if value is not None:
                    points.append((at, value))
            found[series.topic, series.key] = series, points
    return [(series, points) for series, points in found.values()]


def merged(spans: Spans) -> Spans:
    """Overlapping spans as one."""
    found: list[tuple[float, float]] = []
    for since, until in sorted(spans):
        if found and since <= found[-1][1]:
            found[-1] = found[-1][0], max(until, found[-1][1])
        else:
            found.append((since, until))
    return found
