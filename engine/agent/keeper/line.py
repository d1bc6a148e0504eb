"""The keeper's end of the line to one agent. Never waits: an agent may be stopped."""

import contextlib
import os
import socket
import struct

from engine.agent.keeper.frames import Frames, pack

CHUNK = 65536


class Line:
    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._frames = Frames()
        self._unsent = bytearray()
        self.broken = False

    @property
    def blocked(self) -> bool:
        """Something is to be sent that the agent has not taken yet."""
        return bool(self._unsent)

    def fileno(self) -> int:
        return self._connection.fileno()

    def queue(self, kind: bytes, payload: bytes = b"") -> None:
        self._unsent += pack(kind, payload)

    def send(self) -> None:
        try:
            del self._unsent[: self._connection.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self.broken = True

    def receive(self) -> list[tuple[bytes, bytes]]:
        try:
            data = self._connection.recv(CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        self.broken |= not data
        return list(self._frames.feed(data))

    def close(self) -> None:
        self._connection.close()


class Door:
    """Where a later agent knocks; none when the socket could not be made."""

    def __init__(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self._path = path
        self._listener = socket.socket(socket.AF_UNIX)
        directory = os.open(folder, os.O_PATH)
        try:
            # The address of a socket holds only 108 bytes.
            self._listener.bind(f"/proc/self/fd/{directory}/{name}")
        finally:
            os.close(directory)
        self._listener.listen(1)

    def fileno(self) -> int:
        return self._listener.fileno()

    def open(self) -> Line | None:
        connection, _ = self._listener.accept()
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        _, user, _ = struct.unpack("3i", credentials)
        if user == os.getuid():
            return Line(connection)
        connection.close()
        return None

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)
