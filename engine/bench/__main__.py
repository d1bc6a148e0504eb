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
    what.add_argument(
        "--collectives",
        action="store_true",
        help="what an all-reduce between two processes takes over shared memory, TCP and gloo",
    )
    what.add_argument(
        "--parallel",
        action="store_true",
        help="tokens per second of two ranks against one of two threads, and of a pipeline with a "
        "batch for each stage against one with a single batch",
    )
    what.add_argument(
        "--compare",
        action="store_true",
        help="the engine beside what one would use instead; `--compare --help` tells its options",
    )
    parser.add_argument(
        "--steps", type=_positive, default=2000, help="of --scheduler, of each kind (default 2000)"
    )
    parser.add_argument(
        "--model", type=Path, help="of --warm-up and --parallel: a model; default the bundled one"
    )
    parser.add_argument("--plan", default="tp=1,pp=1", help="of --warm-up, e.g. tp=2,pp=1")
    parser.add_argument(
        "--rounds", type=_positive, default=7, help="of --parallel, of each kind (default 7)"
    )
    parser.add_argument("--json", type=Path, help="write the report to this file as well")
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
    if options.collectives:
        from engine.bench import collectives

        return collectives.measure()
    if options.parallel:
        from engine.bench import parallel

        return parallel.measure(options.model, options.rounds)
    from engine.bench import warm_up

    return warm_up.measure(options.model, ParallelPlan.parse(options.plan))


def main() -> int:
    arguments = sys.argv[1:]
    if "--compare" in arguments:
        from engine.bench.compare import command

        arguments.remove("--compare")
        return command.main(arguments)
    options = parse(arguments)
    try:
        report = measure(options)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    text = msgspec.json.format(msgspec.json.encode(report), indent=2).decode()
    print(text)
    if options.json is not None:
        options.json.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
