"""What charts show and how they follow: gaps, kinds, bands, zoom, cursor, markers, pauses."""

import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.charts_stage import (
    LARGE,
    SETTLED,
    Stage,
    browser,
    context,
    desk,
    page,
    pages,
    series,
    show,
    stage,
    subject,
)

__all__ = ["browser", "context", "desk", "page", "pages", "stage"]

pytestmark = [pytest.mark.django_db, pytest.mark.browser]

CPU = '[aria-label="CPU"]'
NOISE = '[aria-label="Noise"]'
TRACES = """selector => document.querySelector(`${selector} [data-plot]`).data.map(trace =>
    ({y: [...trace.y], dash: trace.line.dash, fill: trace.fill ?? "", name: trace.name ?? ""}))"""
NODE = "1/node"


def traces(page: Page, chart: str = CPU) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(TRACES, chart)
    return found


def cpu(values: list[float | None], **more: Any) -> dict[str, Any]:
    return series("cpu_utilization_ratio", values, **more)


def layout(number: int, *told: dict[str, Any], topic: str = NODE) -> dict[str, Any]:
    return {"layouts": [{"n": number, "topic": topic, "series": list(told)}]}


def recent(count: int, ahead: float = 0.0) -> list[float]:
    """Times of the last seconds of a quarter of an hour, as the answer tells them. `ahead`: what
    is newest stays new, however long the browser takes."""
    return [15 * 60 + ahead - count + index for index in range(count)]


def test_the_past_is_drawn_and_a_frame_makes_it_longer(page: Page, stage: Stage) -> None:
    stage.subjects = [subject(NODE, "box-1", "node", recent(3), [cpu([0.1, 0.2, 0.3])])]
    show(page, CPU)
    stage.tell(layout(7, cpu([])))
    stage.frame(7, [0.5], time.time() + 1)
    page.wait_for_function(
        "() => document.querySelector('[aria-label=CPU] [data-plot]').data[0].y.at(-1) === 50"
    )
    expect(page.locator("[data-tile='0'] [data-value]")).to_have_text("50")


def test_where_nothing_was_read_there_is_a_gap(page: Page, stage: Stage) -> None:
    times = [870.0, 871.0, 872.0, 890.0]
    stage.subjects = [subject(NODE, "box-1", "node", times, [cpu([0.1, 0.2, None, 0.4])])]
    show(page, CPU)
    stage.tell(layout(1, cpu([])))
    stage.frame(1, [0.5], time.time() + 5)
    page.wait_for_function(
        "() => document.querySelector('[aria-label=CPU] [data-plot]').data[0].y.at(-1) === 50"
    )
    assert traces(page)[0]["y"] == [10, 20, None, 40, None, 50]


def test_an_estimate_is_dashed_has_its_band_and_says_about(page: Page, stage: Stage) -> None:
    level: dict[str, Any] = {"unit": "dB(A)", "kind": "estimated", "label": "1 m", "scope": "room"}
    stage.subjects = [
        subject(
            NODE,
            "box-1",
            "node",
            recent(2, 60.0),
            [series("noise_dba", [41.0, 42.0], **level), series("noise_band_dba", [3, 3], **level)],
        )
    ]
    show(page, NOISE)
    band, line = traces(page, NOISE)
    assert band["fill"] == "toself"
    assert max(value for value in band["y"] if value is not None) == 45
    assert line["dash"] not in ("solid", "")
    expect(page.locator(f"{NOISE} [data-legend] strong")).to_have_text("≈ 42.0 dB(A)")
    expect(page.locator(f"{NOISE} [data-how]")).to_contain_text("estimated")


def test_what_is_absent_is_named_with_its_reason_and_never_zero(page: Page, stage: Stage) -> None:
    reason = "The processor does not say."
    absent = cpu([None, None], kind="unavailable", reason=reason)
    stage.subjects = [subject(NODE, "box-1", "node", recent(2, 60.0), [absent])]
    show(page, CPU)
    expect(page.locator(f"{CPU} [data-empty]")).to_have_text(reason)
    expect(page.locator(f"{CPU} [data-legend] strong")).to_have_text("—")
    expect(page.locator("[data-tile='0'] [data-value]")).to_have_text("—")
    expect(page.locator("[data-tile='0'] [data-note]")).to_have_text(reason)


def test_a_bucket_shows_what_it_ranged_over(page: Page, stage: Stage) -> None:
    stage.step = 10.0
    told = cpu([0.2, 0.4], low=[0.1, 0.3], high=[0.6, 0.9])
    stage.subjects = [subject(NODE, "box-1", "node", [880.0, 890.0], [told])]
    show(page, CPU)
    band, _line = traces(page)
    assert [y for y in band["y"] if y is not None] == [60, 90, 30, 10]


def test_more_lines_than_one_can_follow_become_a_band(page: Page, stage: Stage) -> None:
    stage.subjects = [
        subject(f"{n}/node", f"box-{n}", "node", recent(2), [cpu([n / 100, n / 100])])
        for n in range(1, 41)
    ]
    show(page, CPU, "/monitor/")
    band, line = traces(page)
    assert line["y"][0] == 20.5
    assert (min(filter(None, band["y"])), max(filter(None, band["y"]))) == (1, 40)
    expect(page.locator(f"{CPU} [data-legend] li")).to_have_count(1)


def test_a_band_of_many_lines_ends_where_nothing_was_read(page: Page, stage: Stage) -> None:
    times = [870.0, 871.0, 880.0, 881.0]
    stage.subjects = [
        subject(f"{n}/node", f"box-{n}", "node", times, [cpu([0.25, 0.25, 0.5, 0.5])])
        for n in range(1, 41)
    ]
    show(page, CPU, "/monitor/")
    assert traces(page)[1]["y"] == [25, 25, None, 50, 50]


def test_what_all_lines_of_a_chart_have_in_common_is_not_told_again(
    page: Page, stage: Stage
) -> None:
    stage.subjects = [
        subject(f"1/node-{n}", f"rank {n} · box-1", "node", recent(2), [cpu([0.1, 0.2])])
        for n in range(2)
    ]
    show(page, CPU)
    assert [trace["name"] for trace in traces(page)] == ["rank 0", "rank 1"]


def test_a_counter_is_drawn_as_what_it_grew_by(page: Page, stage: Stage) -> None:
    chart = '[aria-label="Link between the boxes"]'
    told = series("link_sent_bytes_total", [0, 5e6, 15e6, 1e6], label="eth1", unit="bytes")
    stage.subjects = [subject(NODE, "box-1", "node", recent(4), [told])]
    show(page, chart)
    assert traces(page, chart)[0]["y"] == [None, 5, 10, None]
    expect(page.locator(f"{chart} figcaption [data-unit]")).to_have_text("MB/s")


def test_a_closer_look_is_asked_for_anew_and_can_be_shared(page: Page, stage: Stage) -> None:
    stage.subjects = [subject(NODE, "box-1", "node", recent(60), [cpu([0.1] * 60)])]
    show(page, CPU)
    box = page.locator(f"{CPU} [data-plot]").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.4, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=4)
    page.mouse.up()
    page.wait_for_url("**from=*")
    page.wait_for_function("() => document.querySelector('[data-state]').dataset.state === 'past'")
    asked = [query for query in stage.asked if "from" in query][-1]
    assert 120 < float(asked["to"]) - float(asked["from"]) < 260
    page.reload()
    page.wait_for_function("() => document.querySelector('[data-state]').dataset.state === 'past'")
    page.get_by_role("button", name="Back to live").click()
    page.wait_for_url("**span=15m")


def test_the_cursor_moves_over_all_charts_also_by_key(page: Page, stage: Stage) -> None:
    memory = series("memory_used_bytes", [2.0**30] * 900, unit="bytes")
    stage.subjects = [subject(NODE, "box-1", "node", recent(900), [cpu([0.1] * 900), memory])]
    show(page, CPU)
    page.locator(f"{CPU} [data-box]").hover()
    cursors = page.locator("[data-cursor]:not([hidden])")
    expect(cursors).to_have_count(2)
    page.mouse.move(0, 0)
    expect(cursors).to_have_count(0)
    page.locator(CPU).focus()
    page.keyboard.press("ArrowLeft")
    expect(cursors).to_have_count(2)
    page.keyboard.press("-")
    page.wait_for_url("**from=*")
    page.keyboard.press("Escape")
    page.wait_for_url("**span=15m")


def test_what_happened_is_marked_and_can_be_hidden(page: Page, stage: Stage) -> None:
    stage.subjects = [subject(NODE, "box-1", "node", recent(2), [cpu([0.1, 0.2])])]
    now = time.time()
    told = {"kind": "job", "level": "error", "text": "Deploy smol: Failed", "url": "/deployments/"}
    stage.markers = [{"at": now - 60, "until": now - 30, **told}]
    show(page, CPU)
    marker = page.get_by_role("link", name="Deploy smol: Failed")
    expect(marker).to_be_visible()
    shapes = "() => document.querySelector('[aria-label=CPU] [data-plot]').layout.shapes.length"
    page.wait_for_function(f"({shapes})")
    assert page.evaluate(shapes) == 1
    page.get_by_role("button", name="Markers").click()
    expect(marker).to_be_hidden()
    page.get_by_role("button", name="Markers").click()
    expect(marker).to_be_visible()


def test_a_hidden_page_pauses_and_reads_what_it_missed(page: Page, stage: Stage) -> None:
    stage.subjects = [subject(NODE, "box-1", "node", recent(2), [cpu([0.1, 0.2])])]
    show(page, CPU)
    hide = """state => {
        Object.defineProperty(document, "hidden", {value: state, configurable: true});
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    with page.expect_request("**/telemetry/series*"):
        page.evaluate("() => { document.querySelector('[data-telemetry]').panel.lastFrame = 0; }")
        page.evaluate(hide, False)
    page.wait_for_function(SETTLED, arg=False)
    assert [said["pause"] for said in stage.said if "pause" in said] == [True, False]


def test_a_percentile_beyond_the_last_bar_is_more_and_not_a_number(
    page: Page, stage: Stage
) -> None:
    chart = '[aria-label="Time to first token"]'
    told: dict[str, Any] = {"scope": "engine", "unit": "seconds", "kind": "derived", "label": "p95"}
    name = "time_to_first_token_quantile_seconds"
    beyond = series(name, [0.25, 60.0], **told, low=[0.2, 60.0], high=[0.5, None])
    gauge = series("time_to_first_token_seconds", [0.2], scope="engine", unit="seconds")
    stage.subjects = [subject("launch:a", "smol", "engine", [899.0], [gauge])]
    stage.derived = [subject("launch:a", "smol", "engine", [780.0, 840.0], [beyond])]
    show(page, chart, "/monitor/")
    expect(page.locator(f"{chart} [data-legend] li", has_text="p95")).to_contain_text("> 60 s")


def test_a_large_fleet_is_a_grid_with_the_highest_named_first(page: Page, stage: Stage) -> None:
    page.goto(LARGE)
    expect(page.locator("[data-grid-count]")).to_contain_text("0 of")
    page.wait_for_function("() => document.querySelector('[data-telemetry]').panel?.gridMetric")
    nodes = page.evaluate("() => JSON.parse(document.getElementById('grid-nodes').textContent)")
    metric = "gpu_utilization_ratio"
    cells = [[node["pk"], 0, place / 100] for place, node in enumerate(nodes)]
    cells += [[nodes[0]["pk"], 1, None]]
    stage.tell({"grid": {"metric": metric, "at": time.time(), "cells": cells}})
    expect(page.locator("[data-grid-count]")).to_have_text("40 of 41 accelerators with a reading")
    first = page.locator("[data-worst] tr").first
    expect(first).to_contain_text(nodes[-1]["name"])
    expect(first).to_contain_text("39%")
    with page.expect_navigation(url=f"**{nodes[0]['url']}"):
        page.locator("[data-grid-canvas]").click(position={"x": 100, "y": 6})
