"""A program that reads the accelerators of the machine it finds, whenever it is told to.

On standard input, one a line: `read`, `devices`, `serving yes|no`, `pass SECONDS` (a jump in time),
`kernel` (the kernel's log tells of a fault), `patience SECONDS` (for a reading). Each is answered
by one line of JSON.
"""

import json
import sys
import time
from pathlib import Path

import msgspec

from monitoring.probes.accelerators import Accelerators
from monitoring.probes.base import ProbeRunner
from monitoring.probes.roots import Roots
from monitoring.probes.xids import Xids

LINE = "NVRM: Xid (PCI:0000:01:00): 79, pid=1234, GPU has fallen off the bus."


def main(dev: Path) -> None:
    serving = False
    xids = Xids()
    accelerators = Accelerators(Roots(dev=dev), lambda: serving, xids)
    clock, ahead = time.monotonic, 0.0
    time.monotonic = lambda: clock() + ahead
    accelerators.discover(20)
    runner = ProbeRunner(accelerators.probes, deadline=20)
    for line in sys.stdin:
        word, _space, rest = line.strip().partition(" ")
        answer: object = None
        match word:
            case "read":
                answer = runner.read()
            case "devices":
                answer = accelerators.devices
            case "serving":
                serving = rest == "yes"
            case "pass":
                ahead += float(rest)
            case "patience":
                runner.deadline = float(rest)
            case "kernel":
                xids.unread = ""
                xids.hear(LINE)
        print(json.dumps(msgspec.to_builtins(answer)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
