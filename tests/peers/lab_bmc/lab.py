"""The tests' side of a lab BMC: its process, its knobs, what it was told to do."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.peers.bmc import Certificate

SECONDS = 20.0
ROOT = Path(__file__).resolve().parents[3]


class Lab:
    """One BMC, for one box."""

    def __init__(self, certificate: Certificate) -> None:
        self.certificate = certificate
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.peers.lab_bmc", str(certificate.path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def open(self) -> None:
        assert self._process.stdout is not None
        ports = json.loads(self._process.stdout.readline())
        self.url = f"https://127.0.0.1:{ports['redfish']}"
        self._side = f"http://127.0.0.1:{ports['side']}"

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait(SECONDS)

    def anew(self, **knobs: Any) -> None:
        """As it was when it was made."""
        self._ask("/anew", knobs)

    def turn(self, **knobs: Any) -> None:
        self._ask("/knobs", knobs)

    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("/", None)
        return found

    @property
    def images(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.told()["images"]
        return found

    @property
    def resets(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = self.told()["resets"]
        return found

    def _ask(self, path: str, asked: object) -> Any:
        data = None if asked is None else json.dumps(asked).encode()
        with urllib.request.urlopen(self._side + path, data=data, timeout=SECONDS) as answer:
            return json.loads(answer.read())


@contextmanager
def labs(*certificates: Certificate) -> Iterator[list[Lab]]:
    """Started side by side: each takes a second to be there."""
    made = [Lab(certificate) for certificate in certificates]
    try:
        for lab in made:
            lab.open()
        yield made
    finally:
        for lab in made:
            lab.close()
