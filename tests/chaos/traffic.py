"""Mixed traffic: long and short prompts, streams and whole answers, readers who leave midway."""

import random
import threading
from collections import Counter
from http.client import HTTPException
from typing import Any

from tests.chaos.asking import Asker
from tests.chaos.references import TEXT, question

LONG, SHORT = range(400, 900), range(5, 60)
"""Words of a prompt."""
TOKENS = range(4, 65)


class Traffic:
    """`count` people at once, until `finish`."""

    def __init__(self, asker: Asker, count: int, rng: random.Random) -> None:
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self._asker = asker
        self._words = TEXT.read_text().split()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._talk, args=(random.Random(rng.random()),), daemon=True)
            for _ in range(count)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self, seconds: float = 180.0) -> None:
        """Open answers are read to their end."""
        self._closing.set()
        for thread in self._threads:
            thread.join(seconds)
            if thread.is_alive():
                self.problems.append("somebody never came to an end")

    def _talk(self, rng: random.Random) -> None:
        while not self._closing.is_set():
            length = rng.choice(LONG if rng.random() < 0.25 else SHORT)
            start = rng.randrange(len(self._words) - length)
            body = question(" ".join(self._words[start : start + length]), rng.choice(TOKENS))
            body["temperature"] = rng.choice((0, 0.8, 1.2))
            kind = rng.choice(("streamed", "whole", "left midway"))
            self._note(kind, self._one(kind, body, rng))

    def _one(self, kind: str, body: dict[str, Any], rng: random.Random) -> str:
        """What went wrong, if anything did."""
        try:
            if kind == "whole":
                return self._asker.whole(body)
            texts: list[float] = []
            patience = rng.randrange(1, 20) if kind == "left midway" else 1 << 30
            asker = self._asker.with_notice(lambda: texts.append(0.0))
            answer = asker.ask(body, stop=lambda: len(texts) >= patience)
        except (OSError, HTTPException) as error:
            return f"{type(error).__name__}: {error}"
        return answer.failure or ("" if answer.ended or len(texts) >= patience else "no end")

    def _note(self, kind: str, problem: str) -> None:
        with self._lock:
            self.counts[kind] += 1
            if problem:
                self.counts["failed"] += 1
                self.problems.append(f"{kind}: {problem}")
