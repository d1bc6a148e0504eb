"""Measures the engine and prints what it found as JSON on standard output."""

import argparse
import sys
from pathlib import Path

import msgspec

from engine.config import ParallelPlan
from engine.errors import EngineError


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m engine.bench", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--scheduler",
        action="store_true",
        help="what the head's scheduler costs a step, by the number of waiting requests; loads no "
        "model and no torch",
    )
    what.add_argument(
        "--warm-up",
        action="store_true",
        help="how long the first ten requests of a fresh engine wait for their first token",
    )
    parser.add_argument(
        "--steps", type=_positive, default=2000, help="of --scheduler, of each kind (default 2000)"
    )
    parser.add_argument("--model", type=Path, help="of --warm-up: a model; default the bundled one")
    parser.add_argument("--plan", default="tp=1,pp=1", help="of --warm-up, e.g. tp=2,pp=1")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 1")
    return int(text)


def measure(options: argparse.Namespace) -> msgspec.Struct:
    # Each imports what it needs alone: the scheduler is measured in a process without the rest.
    if options.scheduler:
        from engine.bench import scheduler

        return scheduler.measure(options.steps)
    from engine.bench import warm_up

    return warm_up.measure(options.model, ParallelPlan.parse(options.plan))


def main() -> int:
    try:
        report = measure(parse(sys.argv[1:]))
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
