"""`python -m engine.bench --compare`: its options, and the run from first load to report."""

import argparse
import math
import os
import signal
import sys
import time
from pathlib import Path

import msgspec

from engine.bench.compare import entrants as who
from engine.bench.compare.contest import MULTIPLY_ROWS, Contest, Setting
from engine.bench.compare.entrants import Entrant
from engine.bench.compare.export import export
from engine.bench.compare.hardware import hardware
from engine.bench.compare.limits import Limits, limits_of
from engine.bench.compare.page import write_page
from engine.bench.compare.report import Report, report, rows_of
from engine.bench.compare.targets import verdicts
from engine.bench.compare.weights import operations, shapes
from engine.bench.compare.works import FULL, NAMES, QUICK, Sizes, works
from engine.bundled import bundled_model
from engine.checkpoint import open_checkpoint
from engine.errors import ConfigError, EngineError

SCRATCH = who.ROOT / "var" / "bench"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m engine.bench --compare",
        description="Measures the engine beside what one would use instead, taking turns on one "
        "machine, and prints what it found as JSON. docs/benchmark.md explains it.",
    )
    parser.add_argument(
        "--ours", type=_ours, default=list(who.OURS), metavar="NAME[,NAME]",
        help=f"default {','.join(who.OURS)}",
    )  # fmt: skip
    parser.add_argument("--peer", action="append", default=[], choices=sorted(who.PEERS))
    parser.add_argument(
        "--peer-python", action="append", default=[], type=_pair, metavar="NAME=PATH",
        help="the interpreter of the environment that the peer is installed in",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], type=_setting, metavar="NAME:KEY=VALUE",
        help="a contestant's own setting, e.g. tandem-int8:kv_dtype=bf16 or vllm:dtype=bfloat16",
    )  # fmt: skip
    parser.add_argument(
        "--work", type=_names, default=[], metavar="NAME[,NAME]", help=f"of {', '.join(NAMES)}"
    )
    parser.add_argument("--rounds", type=_positive, default=None, help="default 5; 1 with --quick")
    parser.add_argument("--quick", action="store_true", help="everything small: a smoke run")
    parser.add_argument("--model", type=Path, help="a Llama GGUF; default the bundled model")
    parser.add_argument("--threads", type=_positive, default=2, help="of everybody (default 2)")
    parser.add_argument("--device", default="cpu", help="e.g. cuda (default cpu)")
    parser.add_argument(
        "--scratch", type=Path, default=SCRATCH,
        help="a folder for logs and for the model as peers read it (default var/bench)",
    )  # fmt: skip
    parser.add_argument(
        "--minutes", type=_positive, help="begin no other work after so many, and report"
    )
    parser.add_argument("--json", type=Path, help="write the report to this file as well")
    parser.add_argument("--html", type=Path, help="write the report as a page to this file")
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _ours(text: str) -> list[str]:
    names = _names(text)
    if unknown := [name for name in names if name not in who.OURS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(who.OURS)}")
    return names


def _pair(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH")
    return name, path


def _setting(text: str) -> tuple[str, str, str]:
    name, _colon, rest = text.partition(":")
    key, _equals, value = rest.partition("=")
    if not (name and key and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME:KEY=VALUE")
    return name, key, value


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def measure(options: argparse.Namespace) -> Report:
    """Raises EngineError for what cannot be measured at all."""
    began = time.monotonic()
    machine = hardware()
    sizes = QUICK if options.quick else FULL
    rounds = options.rounds or (1 if options.quick else 5)
    todo = works(sizes, options.work)
    cast = _cast(options)
    model = options.model or bundled_model()
    setting = _setting_of(options, sizes, model, cast)
    config = open_checkpoint(model).config
    rows = tuple(count for count in MULTIPLY_ROWS if count == 1 or not options.quick)
    with Contest(cast, setting) as contest:
        contest.open()
        _check_ours(contest)
        contest.measure_machine(shapes(config), rows)
        contest.run(todo, rounds, 60.0 * options.minutes if options.minutes else math.inf)
        contest.measure_machine(shapes(config), rows)
    found = rows_of(contest.places, todo)
    # What is measured of the machine is its processors': no limit of a GPU.
    on_processors = options.device == "cpu"
    limits = _limits(contest, sizes, operations(config)) if on_processors else None
    return report(
        contest.places,
        limits,
        verdicts(found, limits),
        found,
        seconds=time.monotonic() - began,
        hardware=machine,
        model=model.stem,
        threads=options.threads,
        rounds=rounds,
        quick=options.quick,
    )


def _cast(options: argparse.Namespace) -> list[Entrant]:
    settings: dict[str, dict[str, str]] = {}
    for name, key, value in options.set:
        settings.setdefault(name, {})[key] = value
    peers = list(dict.fromkeys(options.peer))
    if not (options.ours or peers):
        raise ConfigError("Nobody takes part; name contestants with --ours or --peer.")
    return who.entrants(options.ours, peers, dict(options.peer_python), settings)


def _setting_of(
    options: argparse.Namespace, sizes: Sizes, model: Path, cast: list[Entrant]
) -> Setting:
    folder = ""
    if any(entrant.needs_folder for entrant in cast):
        print("The model is written as a Hugging Face folder, once.", file=sys.stderr, flush=True)
        folder = str(export(model, options.scratch / model.stem))
    return Setting(
        gguf=str(model.absolute()),
        folder=folder and os.path.abspath(folder),
        threads=options.threads,
        device=options.device,
        sizes=sizes,
        logs=(options.scratch / "logs").absolute(),
    )


def _check_ours(contest: Contest) -> None:
    """Without ours there is nothing to compare."""
    ours = [place for place in contest.places if place.entrant.ours]
    if ours and all(place.gone for place in ours):
        raise ConfigError(f"{ours[0].entrant.key} cannot take part: {ours[0].gone}")


def _limits(contest: Contest, sizes: Sizes, token_operations: int) -> Limits | None:
    opened = {place.entrant.key: place.opened for place in contest.places if place.opened}
    rates = {
        (place.entrant.key, batch): median
        for place in contest.places
        for batch in sizes.batches
        if (median := place.median(f"decode-{batch}")) is not None
    }
    context = sizes.context + sizes.tokens // 2
    return limits_of(contest.machine, token_operations, context, rates, opened)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    # Whoever is measured must not stay behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        found = measure(options)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
    print(text)
    for path in filter(None, (options.json, options.html)):
        path.parent.mkdir(parents=True, exist_ok=True)
    if options.json is not None:
        options.json.write_text(text + "\n")
    if options.html is not None:
        write_page(found, options.html)
    return 0
