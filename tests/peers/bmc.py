"""A BMC on loopback: TLS with a certificate of its own, accounts, sessions, a tree of resources."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any, ClassVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

V1 = "/redfish/v1"
USER, PASSWORD = "reader", 'pa"ss, with a quote'
CHASSIS = f"{V1}/Chassis/Self"


@dataclass(frozen=True)
class Certificate:
    """Self-made, for 127.0.0.1: its own authority."""

    pem: str
    fingerprint: str
    path: Path


def make_certificate(folder: Path, name: str = "bmc", made: datetime | None = None) -> Certificate:
    """Good from a day before it was `made` (now) to a day after."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = made or datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / f"{name}.pem"
    path.write_bytes(pem + private)
    return Certificate(pem.decode(), certificate.fingerprint(hashes.SHA256()).hex(), path)


def link(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def collection(*paths: str) -> dict[str, Any]:
    return {"Members": [link(path) for path in paths], "Members@odata.count": len(paths)}


def root() -> dict[str, Any]:
    return {
        "RedfishVersion": "1.15.0",
        "Chassis": link(f"{V1}/Chassis"),
        "Links": {"Sessions": link(f"{V1}/SessionService/Sessions")},
    }


def modern() -> dict[str, Any]:
    """EnvironmentMetrics, ThermalSubsystem, and a chassis inside the chassis."""
    inner = f"{V1}/Chassis/GPU_0"
    return {
        f"{V1}/": root(),
        f"{V1}/Chassis": collection(CHASSIS, inner),
        CHASSIS: {
            "Id": "Self",
            "EnvironmentMetrics": link(f"{CHASSIS}/EnvironmentMetrics"),
            "ThermalSubsystem": link(f"{CHASSIS}/ThermalSubsystem"),
        },
        f"{CHASSIS}/EnvironmentMetrics": {
            "PowerWatts": {"Reading": 412.5},
            "EnergykWh": {"Reading": 12.5},
        },
        f"{CHASSIS}/ThermalSubsystem": {
            "Fans": link(f"{CHASSIS}/ThermalSubsystem/Fans"),
            "ThermalMetrics": link(f"{CHASSIS}/ThermalSubsystem/ThermalMetrics"),
        },
        f"{CHASSIS}/ThermalSubsystem/Fans": collection(
            f"{CHASSIS}/ThermalSubsystem/Fans/1",
            f"{CHASSIS}/ThermalSubsystem/Fans/2",
            f"{CHASSIS}/ThermalSubsystem/Fans/3",
        ),
        f"{CHASSIS}/ThermalSubsystem/Fans/1": {
            "Name": "Fan 1",
            "SpeedPercent": {"Reading": 40, "SpeedRPM": 4200},
        },
        f"{CHASSIS}/ThermalSubsystem/Fans/2": {
            "Name": "Fan 2",
            "SpeedPercent": {"Reading": 40},
        },
        f"{CHASSIS}/ThermalSubsystem/Fans/3": {
            "Name": "Fan 3",
            "Status": {"State": "Absent"},
        },
        f"{CHASSIS}/ThermalSubsystem/ThermalMetrics": {
            "TemperatureSummaryCelsius": {"Intake": {"Reading": 24.5}, "Exhaust": {"Reading": 41}},
            "TemperatureReadingsCelsius": [{"DeviceName": "Board", "Reading": 38.0}],
        },
        inner: {"Id": "GPU_0", "EnvironmentMetrics": link(f"{inner}/EnvironmentMetrics")},
        f"{inner}/EnvironmentMetrics": {
            "PowerWatts": {"Reading": 210.0},
            "EnergykWh": {"Reading": 3.0},
        },
    }


def old() -> dict[str, Any]:
    """Power and Thermal alone, as BMCs had it before 2020."""
    return {
        f"{V1}/": root(),
        f"{V1}/Chassis": collection(CHASSIS),
        CHASSIS: {"Power": link(f"{CHASSIS}/Power"), "Thermal": link(f"{CHASSIS}/Thermal")},
        f"{CHASSIS}/Power": {
            "PowerControl": [
                {"PowerConsumedWatts": 240},
                {"PowerConsumedWatts": 90, "Name": "CPU"},
            ]
        },
        f"{CHASSIS}/Thermal": {
            "Fans": [
                {"Name": "Fan1A", "Reading": 5400, "ReadingUnits": "RPM"},
                {"FanName": "Fan2A", "Reading": 35, "ReadingUnits": "Percent"},
            ],
            "Temperatures": [
                {"Name": "Inlet", "ReadingCelsius": 23, "PhysicalContext": "Intake"},
                {"Name": "CPU 1", "ReadingCelsius": 61, "PhysicalContext": "CPU"},
                {"Name": "PCIe", "ReadingCelsius": None},
            ],
        },
    }


def sensors() -> dict[str, Any]:
    """A chassis with a list of sensors and nothing else."""
    listed = {
        "power": {"ReadingType": "Power", "PhysicalContext": "Chassis", "Reading": 175.0},
        "cpu": {"ReadingType": "Power", "PhysicalContext": "CPU", "Reading": 80.0},
        "energy": {"ReadingType": "EnergyJoules", "PhysicalContext": "Chassis", "Reading": 7.2e6},
        "fan": {"ReadingType": "Rotational", "ReadingUnits": "RPM", "Reading": 3000},
        "inlet": {"ReadingType": "Temperature", "PhysicalContext": "Intake", "Reading": 21.0},
        "volts": {"ReadingType": "Voltage", "Reading": 12.1},
    }
    found = {f"{CHASSIS}/Sensors/{name}": {"Name": name, **body} for name, body in listed.items()}
    return {
        f"{V1}/": root(),
        f"{V1}/Chassis": collection(CHASSIS),
        CHASSIS: {"Sensors": link(f"{CHASSIS}/Sensors")},
        f"{CHASSIS}/Sensors": collection(*found),
        **found,
    }


def supplies() -> dict[str, Any]:
    """Power is known of each supply alone."""
    tree: dict[str, Any] = {
        f"{V1}/": root(),
        f"{V1}/Chassis": collection(CHASSIS),
        CHASSIS: {"PowerSubsystem": link(f"{CHASSIS}/PowerSubsystem")},
        f"{CHASSIS}/PowerSubsystem": {"PowerSupplies": link(f"{CHASSIS}/Supplies")},
        f"{CHASSIS}/Supplies": collection(f"{CHASSIS}/Supplies/0", f"{CHASSIS}/Supplies/1"),
    }
    for place, watts in enumerate((130.0, 125.5)):
        supply = f"{CHASSIS}/Supplies/{place}"
        tree[supply] = {"Name": f"PSU {place}", "Metrics": link(f"{supply}/Metrics")}
        tree[f"{supply}/Metrics"] = {"InputPowerWatts": {"Reading": watts}}
    return tree


@dataclass
class Bmc:
    url: str
    tree: dict[str, Any]
    requests: list[tuple[str, str]] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    opens_sessions: bool = True
    mishaps: dict[str, str] = field(default_factory=dict)
    """Path -> `slow`, `cut`, `garbage`, `redirect`, `error` or `drip`."""
    released: threading.Event = field(default_factory=threading.Event)

    def paths(self) -> list[str]:
        return [path for _method, path in self.requests]


@contextmanager
def serve(certificate: Certificate, tree: dict[str, Any]) -> Iterator[Bmc]:
    server = _Server(("127.0.0.1", 0), _Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.path)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    bmc = server.bmc = Bmc(f"https://127.0.0.1:{server.server_port}", tree)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield bmc
    finally:
        bmc.released.set()
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    bmc: Bmc
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # One packet an answer.
    open_to_all: ClassVar[tuple[str, ...]] = (f"{V1}/",)

    def log_message(self, *arguments: Any) -> None: ...

    def do_GET(self) -> None:
        bmc = self.server.bmc
        bmc.requests.append(("GET", self.path))
        if self.path not in self.open_to_all and not self._known():
            self._answer(401, {"error": {"message": "no"}})
        elif mishap := bmc.mishaps.get(self.path):
            self._mishap(mishap)
        elif self.path in bmc.tree:
            self._answer(200, bmc.tree[self.path])
        else:
            self._answer(404, {"error": {"message": "nothing here"}})

    def do_POST(self) -> None:
        bmc = self.server.bmc
        bmc.requests.append(("POST", self.path))
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        if not bmc.opens_sessions:
            self._answer(405, {"error": {"message": "no sessions"}})
        elif (asked.get("UserName"), asked.get("Password")) != (USER, PASSWORD):
            self._answer(401, {"error": {"message": "wrong"}})
        else:
            token = f"token{len(bmc.requests)}"
            bmc.sessions.add(token)
            place = f"{V1}/SessionService/Sessions/{token}"
            self._answer(201, link(place), {"X-Auth-Token": token, "Location": place})

    def do_DELETE(self) -> None:
        bmc = self.server.bmc
        bmc.requests.append(("DELETE", self.path))
        bmc.sessions.discard(self.path.rsplit("/", 1)[-1])
        self._answer(204, None)

    def _known(self) -> bool:
        token = self.headers.get("X-Auth-Token")
        if token is not None:
            return token in self.server.bmc.sessions
        word = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        return self.headers.get("Authorization") == f"Basic {word}"

    def _mishap(self, mishap: str) -> None:
        match mishap:
            case "slow":
                self.server.bmc.released.wait(20.0)
                self.close_connection = True
            case "cut":
                self.send_response(200)
                self.send_header("Content-Length", "5000")
                self.end_headers()
                self.wfile.write(b'{"PowerWatts"')
                self.wfile.flush()
                self.close_connection = True
            case "drip":
                self._drip()
            case "garbage":
                self._answer(200, None, body=b"<html>login</html>")
            case "redirect":
                self._answer(307, None, {"Location": "https://127.0.0.2/elsewhere"})
            case "error":
                self._answer(503, {"error": {"message": "busy"}})

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5000")
        self.end_headers()
        while not self.server.bmc.released.wait(0.05):
            self.wfile.write(b" ")
            self.wfile.flush()
        self.close_connection = True

    def _answer(
        self,
        status: int,
        document: Any,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> None:
        content = body if body is not None else json.dumps(document).encode() if document else b""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def wait_until(condition: Any, what: str, seconds: float = 10.0) -> None:
    """For a thread of a peer or of a reader to get to it."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"{what} within {seconds:g} s"
        time.sleep(0.01)
