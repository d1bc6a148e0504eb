"""The agent's own log lines, for the panel to show beside those of its engines."""

import logging
from collections.abc import Iterator

from engine.agent.logs import LogBuffer
from engine.logs import JsonFormatter
from engine.protocol.agent import LogLines

KEY = "agent"


class OwnLog(logging.Handler):
    """Keeps what is logged in this process until it is taken. Lines carry their level as JSON."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(JsonFormatter())
        self._buffer = LogBuffer()

    def emit(self, record: logging.LogRecord) -> None:
        self._buffer.append(self.format(record))

    def take(self) -> Iterator[LogLines]:
        lines = self._buffer.take()
        if lines:
            yield LogLines(key=KEY, launch="", lines=lines)
