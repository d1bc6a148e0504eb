"""`python -m tests.chaos.soak`: mixed traffic for minutes, and the memory of every process."""

import argparse
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.chaos.asking import Asker
from tests.chaos.chaos import tell
from tests.chaos.fleet import Fleet, fleet
from tests.chaos.leaks import leaks_of
from tests.chaos.memory import Memory
from tests.chaos.traffic import Traffic
from tests.engine.boxes import why_not

WARM_MINUTES = 2.0
LOOK_SECONDS = 5.0
PEOPLE = 6


def main() -> int:
    """Exit code: 0 when memory stayed flat and nothing failed or leaked; else 1."""
    options = _parser().parse_args()
    if reason := why_not():
        print(f"NO SOAK: {reason}", file=sys.stderr)
        return 0 if not os.environ.get("CI") else 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    tell("building the fleet")
    with fleet(logs=options.logs) as it:
        tell(f"the fleet answers; {options.minutes:g} minutes of traffic")
        found = soak(it, options.minutes, random.Random(options.seed))
    found["processes_left"] = len(it.left)
    found["clean"] = found["clean"] and not found["processes_left"]
    text = json.dumps(found, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return 0 if found["clean"] else 1


def soak(it: Fleet, minutes: float, rng: random.Random) -> dict[str, Any]:
    warm, end = 60 * min(WARM_MINUTES, minutes / 3), 60 * minutes
    traffic = Traffic(Asker(it.panel.url, it.panel.key), PEOPLE, rng)
    memory = Memory(it)
    begun = time.monotonic()
    traffic.start()
    while (now := time.monotonic() - begun) < end:
        memory.look()
        time.sleep(min(LOOK_SECONDS, end - now))
    rows = memory.table(warm, end)
    traffic.finish()
    leaks = leaks_of(it)
    for row in rows:
        tell(_line(row))
    flat = all(row["flat"] for row in rows)
    return {
        "minutes": minutes,
        "from_minute": warm / 60,
        "requests": dict(traffic.counts),
        "problems": traffic.problems[:20],
        "processes": rows,
        "flat": flat,
        "blocks_leaked": leaks.blocks,
        "audit": leaks.audit,
        "clean": flat and not (traffic.problems or leaks.blocks or leaks.audit),
    }


def _line(row: dict[str, Any]) -> str:
    rss, pss = row["rss"], row["pss"]
    return (
        f"{row['process']:<24} RSS {rss['then_mb']:>7} -> {rss['end_mb']:>7} MB "
        f"({rss['mb_a_minute']:+.2f}/min)  PSS {pss['then_mb']:>7} -> {pss['end_mb']:>7} MB "
        f"({pss['mb_a_minute']:+.2f}/min)  {'flat' if row['flat'] else 'GROWS'}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="a file for the report")
    parser.add_argument("--logs", type=Path, help="a folder that the fleet's logs are copied to")
    return parser


if __name__ == "__main__":
    sys.exit(main())
