"""The report as one page that needs nothing from outside."""

import html
import json
from pathlib import Path

from plotly.offline import get_plotlyjs

from engine.bench.compare.charts import charts
from engine.bench.compare.report import Player, Report, Row, Verdict
from engine.bench.compare.spread import Spread

_STYLE = (Path(__file__).parent / "page.css").read_text
_SCRIPT = (Path(__file__).parent / "page.js").read_text


def write_page(report: Report, path: Path) -> None:
    path.write_text(page(report), encoding="utf-8")


def page(report: Report) -> str:
    figures = json.dumps(charts(report)).replace("</", "<\\/")
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<title>Tandem, side by side</title>",
            f"<style>{_STYLE()}</style></head><body><main>",
            _head(report),
            _targets(report.verdicts),
            '<div class="charts">',
            "".join(
                f'<section class="card"><h2>{_text(each["title"])}</h2>'
                f'<p>{_text(each["note"])}</p><div class="plot" id="{each["id"]}"></div></section>'
                for each in charts(report)
            ),
            "</div>",
            _values(report),
            _limits(report),
            _players(report.players),
            "</main>",
            f"<script>{get_plotlyjs()}</script>",
            f'<script id="figures" type="application/json">{figures}</script>',
            f"<script>{_SCRIPT()}</script></body></html>",
        ]
    )


def _text(value: object) -> str:
    return html.escape(str(value))


def _head(report: Report) -> str:
    machine = report.hardware
    sets = ", ".join(machine.instruction_sets) or "none that matter here"
    quick = " A quick run: its figures say that it works, no more." if report.quick else ""
    return (
        "<header><h1>Tandem, side by side</h1>"
        f"<p>{_text(report.model)} on {_text(machine.processor)}, {report.threads} threads for "
        f"each contestant, {report.rounds} rounds, {_text(report.made)}. {_minutes(report.seconds)}"
        f"{_text(quick)}</p>"
        f"<p class='quiet'>{machine.cores} cores, {machine.memory_bytes / 2**30:.0f} GiB, "
        f"{_text(machine.system)}, instruction sets {_text(sets)}. Load when it began: "
        f"{machine.load}.</p></header>"
    )


def _minutes(seconds: float) -> str:
    return f"It took {seconds / 60:.0f} minutes." if seconds > 90 else f"It took {seconds:.0f} s."


def _targets(verdicts: list[Verdict]) -> str:
    rows = "".join(
        f"<tr><td>{_text(each.what)}</td><td>{_text(each.target)}</td>"
        f"<td class='number'>{_found(each)}</td><td>{_text(each.who)}</td>"
        f"<td>{_met(each)}</td></tr>"
        for each in verdicts
    )
    return _table("Targets", ["Work", "Target", "Found", "Who", ""], rows) if rows else ""


def _found(verdict: Verdict) -> str:
    if verdict.found is None:
        return "–"
    spread = verdict.spread
    between = f" <small>{_number(spread.low)}–{_number(spread.high)}</small>" if spread else ""
    return f"{_number(verdict.found)}{between}"


def _met(verdict: Verdict) -> str:
    if verdict.met is None:
        return f"<span class='badge'>{_text(verdict.reason)}</span>"
    word, kind = ("met", "good") if verdict.met else ("missed", "bad")
    return f"<span class='badge {kind}'>{word}</span>"


def _values(report: Report) -> str:
    keys = [player.key for player in report.players]
    rows = "".join(
        f"<tr><td>{_text(row.title)} <small>{_text(row.unit)}</small></td>"
        + "".join(f"<td class='number'>{_cell(row, key)}</td>" for key in keys)
        + f"<td class='number'>{_ratio(row)}</td></tr>"
        for row in report.rows
    )
    names = ["Work", *keys, "Ours to the best peer"]
    note = (
        "Medians, and below them where the middle half of the rounds lies. A ratio compares the "
        "same rounds of both; above 1 ours is better."
    )
    return _table("All values", names, rows, note)


def _cell(row: Row, key: str) -> str:
    series = row.series[key]
    if series.spread is None:
        return f"–<br><small>{_text(series.absent)}</small>"
    mark = " class='best'" if key in (row.ours, row.peer) else ""
    return f"<b{mark}>{_number(series.spread.median)}</b>{_between(series.spread)}"


def _ratio(row: Row) -> str:
    spread = row.against(row.peer)
    return f"<b>{_number(spread.median)} ×</b>{_between(spread)}" if spread else "–"


def _between(spread: Spread) -> str:
    if spread.count < 2:
        return ""
    return f"<br><small>{_number(spread.low)}–{_number(spread.high)}</small>"


def _limits(report: Report) -> str:
    limits = report.limits
    if limits is None:
        return ""
    rows = "".join(
        f"<tr><td>{_text(each.key)}</td><td class='number'>{each.batch}</td>"
        f"<td class='number'>{1e3 * each.step_seconds:.1f}</td>"
        f"<td class='number'>{each.step_bytes / 1e6:.0f}</td>"
        f"<td class='number'>{each.gigabytes_per_second:.1f}</td>"
        f"<td class='number'>{_share(each.of_bandwidth)}</td>"
        f"<td class='number'>{each.operations / 1e9:.2f}</td>"
        f"<td class='number'>{_share(each.of_int8)}</td>"
        f"<td class='number'>{_share(each.of_fp32)}</td></tr>"
        for each in limits.distances
    )
    names = [
        "Contestant", "Batch", "Step, ms", "Reads, MB", "GB/s", "Of the bandwidth",
        "10⁹ operations", "int8 matrices' time in it", "fp32 matrices' time in it",
    ]  # fmt: skip
    rates = ", ".join(
        f"{name} {_number(spread.median)} ms ({limits.operations_per_second[name]:g} × 10⁹/s)"
        for name, spread in limits.multiply.items()
    )
    note = (
        f"All threads together read {limits.bandwidth.high:.1f} GB/s at best. All matrices of the "
        f"model once, by kind and rows: {rates}. Of the two ways to multiply int8 the quicker is "
        "the limit. A share above 100 % means that a contestant multiplies faster than torch's own "
        "product does here."
    )
    return _table("Distance from the machine's limits", names, rows, note)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def _players(players: list[Player]) -> str:
    rows = "".join(
        f"<tr><td>{_text(each.key)}</td><td>{_text(each.name)}</td><td>{_text(each.how)}</td>"
        f"<td class='number'>{_resting(each)}</td><td>{_text(each.gone)}</td></tr>"
        for each in players
    )
    note = "What each took of one core while another one was measured, and why one left early."
    return _table("Contestants", ["", "Name", "Settings", "At rest", "Left"], rows, note)


def _resting(player: Player) -> str:
    return "–" if player.resting_share is None else f"{100 * player.resting_share:.1f} %"


def _table(title: str, names: list[str], rows: str, note: str = "") -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    return (
        f"<section class='card'><h2>{_text(title)}</h2><p>{_text(note)}</p><div class='wide'>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def _number(value: float) -> str:
    """Three digits that matter."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
