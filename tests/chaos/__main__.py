"""`python -m tests.chaos`: break a fleet again and again while people read from it."""

import argparse
import os
import random
import signal
import sys
import time
from pathlib import Path

from tests.chaos.asking import Asker
from tests.chaos.chaos import Chaos, as_json, order, report, tell
from tests.chaos.faults import KINDS
from tests.chaos.fleet import FALLBACKS, fleet
from tests.chaos.references import undisturbed
from tests.engine.boxes import why_not

TOKENS = range(96, 161)


def main() -> int:
    """Exit code: 0 when nothing was lost, repeated, left without an end or leaked; else 1."""
    options = _parser().parse_args()
    if reason := why_not():
        print(f"NO CHAOS: {reason}", file=sys.stderr)
        return 0 if not os.environ.get("CI") else 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    rng = random.Random(seed)
    kinds = order(options.faults, options.only, rng)
    tell(f"seed {seed}, {len(kinds)} faults, fallback {options.fallback}: building the fleet")
    with fleet(options.fallback, options.logs) as it:
        tell("the fleet answers; undisturbed answers first")
        begun = time.monotonic()
        asker = Asker(it.panel.url, it.panel.key)
        references = undisturbed(asker, options.answers, TOKENS, rng)
        tell(f"{len(references)} answers noted in {time.monotonic() - begun:.0f} s; faults now")
        account = Chaos(it, references, rng, options.streams).run(kinds)
    words = {"seed": seed, "fallback": options.fallback, "streams": options.streams}
    found = report(account, **words, processes_left=len(it.left))
    text = as_json(found)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return 0 if account.clean and not it.left else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--seed", type=int, help="the same one gives the same order of faults")
    parser.add_argument("--fallback", choices=FALLBACKS, default="none")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--answers", type=int, default=12, help="different ones to read")
    parser.add_argument(
        "--only", type=_kinds, default=list(KINDS), help="kinds, with commas between them"
    )
    parser.add_argument("--json", type=Path, help="a file for the report")
    parser.add_argument("--logs", type=Path, help="a folder that the fleet's logs are copied to")
    return parser


def _kinds(text: str) -> list[str]:
    found = text.split(",")
    for kind in found:
        if kind not in KINDS:
            raise argparse.ArgumentTypeError(f"{kind!r} is none of {', '.join(KINDS)}")
    return found


if __name__ == "__main__":
    sys.exit(main())
