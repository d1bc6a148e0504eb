"""Plotly figures of a report, as plain data."""

import textwrap
from typing import Any

from engine.bench.compare.report import Report, Row

COLOURS = {
    "tandem-int8": "#2563eb",
    "tandem-int4": "#60a5fa",
    "llamacpp": "#f59e0b",
    "hf": "#10b981",
    "vllm": "#a855f7",
}
OTHER = "#6b7280"
LABEL = 16
"""Letters of a label's line."""
Chart = dict[str, Any]
_GROUPS = (
    ("decode", "Decode", "Tokens per second, all answers together; more is better.", "decode-"),
    ("prefill", "Prefill", "Prompt tokens per second; more is better.", "prefill-"),
    ("first", "Time to first token", "Seconds, logarithmic; less is better.", "first-"),
    ("noisy", "Beside a busy core", "Times slower than alone; less is better.", "noisy-times"),
    ("serve", "Serving", "Tokens per second; more is better.", "serve"),
    ("wait", "Serving: waiting", "Seconds, logarithmic; less is better.", "serve-"),
    ("load", "Start to first token", "Seconds with a warm disk; less is better.", "load"),
    ("memory", "Peak memory", "Megabytes of all its processes; less is better.", "memory"),
)
_LOGARITHMIC = ("first", "wait")


def charts(report: Report) -> list[Chart]:
    """One for each group of figures that has a value."""
    found = []
    for name, title, note, prefix in _GROUPS:
        rows = [row for row in report.rows if _belongs(row.name, prefix) and _has_values(row)]
        if rows:
            found.append(
                {
                    "id": f"chart-{name}",
                    "title": title,
                    "note": note,
                    "traces": _traces(report, rows),
                    "log": name in _LOGARITHMIC,
                    "unit": rows[0].unit,
                }
            )
    ratios = _ratios(report)
    return [ratios, *found] if ratios else found


def _belongs(name: str, prefix: str) -> bool:
    return name.startswith(prefix) if prefix.endswith("-") else name == prefix


def _has_values(row: Row) -> bool:
    return any(series.spread for series in row.series.values())


def _traces(report: Report, rows: list[Row]) -> list[Chart]:
    """A bar for each, as long as its median, with the middle half of its rounds."""
    found = []
    for player in report.players:
        spreads = [row.series[player.key].spread for row in rows]
        if not any(spreads):
            continue
        found.append(
            {
                "type": "bar",
                "name": player.key,
                "x": [_broken(row.title) for row in rows],
                "y": [spread and spread.median for spread in spreads],
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": [spread and spread.high - spread.median for spread in spreads],
                    "arrayminus": [spread and spread.median - spread.low for spread in spreads],
                    "thickness": 1.2,
                    "width": 3,
                },
                "marker": {"color": COLOURS.get(player.key, OTHER)},
                "hovertemplate": f"%{{x}}<br>%{{y:.3s}} {rows[0].unit}<extra>{player.key}</extra>",
            }
        )
    return found


def _broken(title: str) -> str:
    """Over several lines, so that labels stand upright side by side."""
    return "<br>".join(textwrap.wrap(title, LABEL))


def _ratios(report: Report) -> Chart | None:
    """Our best to each peer; the line at 1 is where both are alike."""
    own = {player.key for player in report.players if player.ours}
    traces = []
    for player in report.players:
        pairs = [(row, row.against(player.key)) for row in report.rows]
        known = [(row, spread) for row, spread in pairs if spread is not None]
        if player.key in own or not known:
            continue
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": player.key,
                "x": [spread.median for _row, spread in known],
                "y": [row.title for row, _spread in known],
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [spread.high - spread.median for _row, spread in known],
                    "arrayminus": [spread.median - spread.low for _row, spread in known],
                },
                "marker": {"color": COLOURS.get(player.key, OTHER), "size": 10},
                "hovertemplate": f"%{{y}}<br>%{{x:.2f}} × {player.key}<extra></extra>",
            }
        )
    if not traces:
        return None
    return {
        "id": "chart-ratios",
        "title": "Ours against each peer",
        "note": "Pair by pair, round for round, on a logarithmic scale; right of the line ours is "
        "better.",
        "traces": traces,
        "horizontal": True,
        "log": True,
        "unit": "×",
    }
