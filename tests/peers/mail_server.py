"""A mail server on this machine that keeps what it is given, or refuses whom it is told to."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Mail:
    sender: str
    recipients: list[str]
    text: str


@dataclass
class MailServer:
    port: int = 0
    refuses: str = ""
    """A recipient that it does not know."""
    taken: list[Mail] = field(default_factory=list)


class _Talk(socketserver.StreamRequestHandler):
    server: "_Server"

    def handle(self) -> None:
        self.say("220 mail.example ready")
        self.mail = Mail("", [], "")
        while line := self.rfile.readline().decode().strip():
            if line.upper() == "QUIT":
                self.say("221 bye")
                return
            self.say(self.answer(line[:4].upper(), line.partition("<")[2].partition(">")[0]))

    def answer(self, verb: str, address: str) -> str:
        peer = self.server.peer
        if verb == "MAIL":
            self.mail.sender = address
        elif verb == "RCPT" and address == peer.refuses:
            return "550 5.1.1 No such user here"
        elif verb == "RCPT":
            self.mail.recipients.append(address)
        elif verb == "DATA":
            self.say("354 go ahead")
            self.mail.text = self.text()
            peer.taken.append(self.mail)
        return "250 ok"

    def text(self) -> str:
        lines = []
        while (line := self.rfile.readline().decode()) != ".\r\n":
            lines.append(line)
        return "".join(lines)

    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    peer: MailServer


@contextmanager
def mail_server() -> Iterator[MailServer]:
    server = _Server(("127.0.0.1", 0), _Talk)
    peer = server.peer = MailServer(port=server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield peer
    finally:
        server.shutdown()
        thread.join(20)
        server.server_close()
