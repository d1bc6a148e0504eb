"""Zeros that a reader would take for readings: in pages, JSON, CSV and Prometheus text."""

import csv
import io
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

UNITS = (
    "%|W|kW|Wh|kWh|°C|B|KiB|MiB|GiB|TiB|kB|MB|GB|rpm|dB\\(A\\)|dB|µs|ms|s|J|kJ|MJ|J/token|Hz|MHz|GHz"
    "|kB/s|MB/s|GB/s|Mbit/s|Gbit/s|tokens/s|€|\\$"
)
ZERO = re.compile(rf"(?<![\w.,:/+-])-?0(?:[.,]0+)?\s?(?:{UNITS})(?![\w/])")
SILENT = frozenset({"script", "style", "select", "textarea", "input", "time", "dialog", "form"})
VALUES = frozenset({"v", "lo", "hi", "cells", "value", "number", "low", "high", "mean"})
TELLING = frozenset({"tandem_metric_available", "tandem_telemetry_age_seconds"})
"""Series whose 0 says something about the readings; they are none themselves."""


class _Words(HTMLParser):
    """What a person reads: not what they may type, and no script."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in SILENT and tag != "input":
            self._silent.append(tag)
        for name, value in attrs:
            if name in ("title", "aria-label", "aria-valuenow") and value and not self._silent:
                self.words.append(value)

    def handle_endtag(self, tag: str) -> None:
        if self._silent and self._silent[-1] == tag:
            self._silent.pop()

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.words.append(data)


def in_page(html: str) -> list[str]:
    """Every zero with a unit, and what stands around it."""
    parser = _Words()
    parser.feed(html)
    text = " ".join(" ".join(parser.words).split())
    return [text[max(0, found.start() - 60) : found.end() + 20] for found in ZERO.finditer(text)]


def in_json(told: Any, inside: str = "") -> Iterator[str]:
    """Every number, zero or not, where values stand: nothing has one."""
    if isinstance(told, dict):
        for name, value in told.items():
            yield from in_json(value, name if name in VALUES else "")
    elif isinstance(told, list):
        for value in told:
            yield from in_json(value, inside)
    elif inside and isinstance(told, int | float) and not isinstance(told, bool):
        yield f"{inside}: {told}"


def in_csv(text: str) -> list[str]:
    """Every cell that is a number, but for the two columns of the time; nothing was read."""
    return [
        cell
        for row in csv.reader(io.StringIO(text))
        for cell in row[2:]
        if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", cell)
    ]


def in_prometheus(text: str, measured: frozenset[str]) -> list[str]:
    """Every sample of a metric that was read to be absent."""
    samples = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [line for line in samples if re.split(r"[{ ]", line)[0] in measured - TELLING]
