"""A sound level meter at the end of a serial line, which here is a socket on loopback."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Meter:
    """Says its line again and again to whoever listens, until it is silenced."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.device = f"socket://127.0.0.1:{self.server.getsockname()[1]}"
        self.line = b""
        self.ended = threading.Event()
        self.hang_up = threading.Event()

    def run(self) -> None:
        self.server.settimeout(0.05)
        while not self.ended.is_set():
            try:
                client, _address = self.server.accept()
            except TimeoutError:
                continue
            with client:
                self._speak(client)

    def _speak(self, client: socket.socket) -> None:
        self.hang_up.clear()
        while not self.ended.wait(0.02) and not self.hang_up.is_set():
            try:
                client.sendall(self.line)
            except OSError:
                return


@contextmanager
def serve(line: bytes = b"") -> Iterator[Meter]:
    meter = Meter()
    meter.line = line
    thread = threading.Thread(target=meter.run, daemon=True)
    thread.start()
    try:
        yield meter
    finally:
        meter.ended.set()
        thread.join(10)
        meter.server.close()
