"""The process: Redfish over TLS, and a plain loopback port for the test that owns it.

`python -m tests.peers.lab_bmc CERTIFICATE` prints both ports as JSON and serves until its standard
input ends.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.peers.lab_bmc.box import Box
from tests.peers.lab_bmc.front import Front
from tests.peers.lab_bmc.redfish import build


class Side(BaseHTTPRequestHandler):
    """GET: what happened so far. POST: other knobs, or everything anew."""

    box: Box

    def log_message(self, *arguments: object) -> None: ...

    def do_GET(self) -> None:
        self._answer(self.box.told())

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/anew":
            self.box.begin_anew()
        self.box.turn(asked)
        self._answer(self.box.told())

    def _answer(self, document: object) -> None:
        content = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main() -> None:
    box = Box()
    front = Front(box, build(box), sys.argv[1])
    Side.box = box
    side = ThreadingHTTPServer(("127.0.0.1", 0), Side)
    for server in (front, side):
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    print(json.dumps({"redfish": front.port, "side": side.server_port}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
