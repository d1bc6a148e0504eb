"""Measures the engine and prints what it found as JSON on standard output."""

import argparse
import sys

import msgspec

from engine.bench import scheduler


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m engine.bench", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--scheduler",
        action="store_true",
        help="what the head's scheduler costs a step, by the number of waiting requests; loads no "
        "model and no torch",
    )
    parser.add_argument(
        "--steps", type=int, default=2000, help="steps measured of each kind (default 2000)"
    )
    return parser.parse_args(arguments)


def main() -> int:
    options = parse(sys.argv[1:])
    report = scheduler.measure(options.steps)
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
