"""sushy-tools' emulator, completed with what its fake driver lacks: an inventory, updates by push
and by fetch, tasks, accounts, and restarts at once."""

import base64
import json
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import flask
from sushy_tools.emulator import main as emulator
from sushy_tools.emulator.resources.systems import fakedriver

from tests.peers.lab_bmc.box import PASSWORD, SYSTEM, USER, Box

V1 = "/redfish/v1"
INVENTORY = f"{V1}/UpdateService/FirmwareInventory"
SESSIONS = f"{V1}/SessionService/Sessions"
NO_BODY = 64 * 1024
"""What is read of an upload before the line is cut."""


def build(box: Box) -> flask.Flask:
    class Driver(fakedriver.FakeDriver):  # type: ignore[misc]  # the library is untyped
        """Restarts are done when they are asked for."""

        def set_power_state(self, identity: str, state: str) -> None:
            box.reset("ComputerSystem", state)

    fakedriver.FakeDriver = Driver
    app: flask.Flask = emulator.app
    emulator.app.configure(
        extra_config={
            "SUSHY_EMULATOR_FAKE_DRIVER": True,
            "SUSHY_EMULATOR_FEATURE_SET": "full",
            "SUSHY_EMULATOR_STATE_DIR": tempfile.mkdtemp(prefix="lab-bmc-"),
            "SUSHY_EMULATOR_FAKE_SYSTEMS": [
                {
                    "uuid": SYSTEM,
                    "name": "box",
                    "power_state": "On",
                    "external_notifier": False,
                    "nics": [{"mac": "02:00:00:00:00:01", "ip": "127.0.0.1"}],
                }
            ],
        }
    )
    _guard(app, box)
    _inventory(app, box)
    _updates(app, box)
    _tasks(app, box)
    _manager(app, box)
    _complete(app, box)
    return app


def answer(
    document: Any, status: int = 200, headers: dict[str, str] | None = None
) -> flask.Response:
    return flask.Response(json.dumps(document), status, headers, content_type="application/json")


def error(status: int, message: str) -> flask.Response:
    return answer({"error": {"code": "Base.1.0.GeneralError", "message": message}}, status)


def collection(path: str, members: list[str]) -> flask.Response:
    found = [{"@odata.id": f"{path}/{member}"} for member in members]
    return answer({"@odata.id": path, "Members": found, "Members@odata.count": len(found)})


def _guard(app: flask.Flask, box: Box) -> None:
    tokens: set[str] = set()

    @app.before_request
    def known() -> flask.Response | None:
        request = flask.request
        if box.silent and box.knobs.busy:
            box.ask_in_vain()
            return error(503, "It starts anew.")
        word = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        signed_in = (
            request.path.rstrip("/") == V1
            or (request.path == SESSIONS and request.method == "POST")
            or request.headers.get("X-Auth-Token") in tokens
            or request.headers.get("Authorization") == f"Basic {word}"
        )
        if signed_in:
            return None
        box.failed_signins += 1
        return error(401, "Who are you?")

    @app.route(SESSIONS, methods=["POST"])
    def sign_in() -> flask.Response:
        asked = flask.request.get_json()
        if not box.knobs.sessions:
            return error(405, "No sessions here.")
        if (asked.get("UserName"), asked.get("Password")) != (USER, PASSWORD):
            box.failed_signins += 1
            return error(401, "Who are you?")
        token = secrets.token_hex(8)
        tokens.add(token)
        place = f"{SESSIONS}/{token}"
        return answer({"@odata.id": place}, 201, {"X-Auth-Token": token, "Location": place})

    @app.route(f"{SESSIONS}/<token>", methods=["DELETE"])
    def sign_out(token: str) -> flask.Response:
        tokens.discard(token)
        return flask.Response("", 204)


def _inventory(app: flask.Flask, box: Box) -> None:
    @app.route(INVENTORY)
    def inventory() -> flask.Response:
        return collection(INVENTORY, list(box.active))

    @app.route(f"{INVENTORY}/<name>")
    def member(name: str) -> flask.Response:
        box.settle()
        if name not in box.active:
            return error(404, "No such part.")
        return answer(
            {
                "@odata.id": f"{INVENTORY}/{name}",
                "Id": name,
                "Name": name,
                "Version": box.active[name],
                "Updateable": True,
                "Status": {"State": "Enabled", "Health": "OK"},
                "Oem": {"Lab": {"StagedVersion": box.staged.get(name)}},
            }
        )


def _updates(app: flask.Flask, box: Box) -> None:
    def simple_update() -> flask.Response:
        asked = flask.request.get_json()
        if box.knobs.fault == "refuse":
            return error(400, "The BMC is locked.")
        url, targets = asked.get("ImageURI"), asked.get("Targets")
        if not url or not targets:
            return error(400, "ImageURI and Targets are needed.")
        when = asked.get("@Redfish.OperationApplyTime", "Immediate")
        number = box.begin(targets, when, None)
        threading.Thread(target=box.fetch, args=(number, url), daemon=True).start()
        return _accepted(box, number)

    app.view_functions["UpdateService.update_service_simple_update"] = simple_update

    @app.route(f"{V1}/UpdateService/push", methods=["POST"])
    def push() -> flask.Response:
        if box.knobs.fault == "vanish":
            return _vanish(box)
        if box.knobs.fault == "refuse":
            return error(400, "The BMC is locked.")
        parameters = json.loads(flask.request.form["UpdateParameters"])
        content = flask.request.files["UpdateFile"].read()
        box.got(content, "push", True, parameters)
        when = parameters.get("@Redfish.OperationApplyTime", "Immediate")
        return _accepted(box, box.begin(parameters["Targets"], when, content))


def _vanish(box: Box) -> flask.Response:
    """In the middle of an upload, and for good."""
    some = flask.request.environ["wsgi.input"].read(NO_BODY)
    box.got(some, "push", False, {})
    box.go_silent(3600.0)
    line: socket.socket = flask.request.environ["werkzeug.socket"]
    line.shutdown(socket.SHUT_RDWR)
    return flask.Response("")


def _accepted(box: Box, number: str) -> flask.Response:
    place = f"{V1}/TaskService/TaskMonitors/{number}"
    match box.knobs.accepted:
        case "task":
            return answer(_task(box, number), 202, {"Location": place, "Retry-After": "1"})
        case "empty":
            return flask.Response("", 202, {"Location": f"https://192.0.2.1{place}"})
        case "monitor":
            return answer({"Messages": []}, 202, {"Location": place})
    return flask.Response("", 202)


def _task(box: Box, number: str) -> dict[str, Any]:
    state, percent, messages = box.state_of(number)
    return {
        "@odata.id": f"{V1}/TaskService/Tasks/{number}",
        "Id": number,
        "Name": f"Update {number}",
        "TaskState": state,
        "TaskStatus": "Critical" if state == "Exception" else "OK",
        "PercentComplete": percent,
        "TaskMonitor": f"{V1}/TaskService/TaskMonitors/{number}",
        "Messages": messages,
    }


def _tasks(app: flask.Flask, box: Box) -> None:
    @app.route(f"{V1}/TaskService/Tasks")
    def tasks() -> flask.Response:
        return collection(f"{V1}/TaskService/Tasks", list(box.jobs))

    @app.route(f"{V1}/TaskService/Tasks/<number>")
    def task(number: str) -> flask.Response:
        return _looked_at(box, number) or answer(_task(box, number))

    @app.route(f"{V1}/TaskService/TaskMonitors/<number>")
    def monitor(number: str) -> flask.Response:
        gone = _looked_at(box, number)
        if gone is not None:
            return gone
        document = _task(box, number)
        if document["TaskState"] != "Running":
            return answer(document)
        return flask.Response("", 202, {"Retry-After": "1"})


def _looked_at(box: Box, number: str) -> flask.Response | None:
    job, knobs = box.jobs.get(number), box.knobs
    if job is None:
        return error(404, "No such task.")
    job.looks += 1
    if knobs.silent_after and job.looks == knobs.silent_after:
        box.go_silent(knobs.silent_seconds, knobs.silent_asks)
    if knobs.reap_after and job.looks > knobs.reap_after:
        box.state_of(number)
        return error(404, "No such task.")
    return None


def _manager(app: flask.Flask, box: Box) -> None:
    @app.route(f"{V1}/Managers/<identity>/Actions/Manager.Reset", methods=["POST"])
    def restart(identity: str) -> flask.Response:
        box.reset("Manager", flask.request.get_json()["ResetType"])
        return flask.Response("", 204)

    @app.route(f"{V1}/Chassis/<identity>/Power")
    def power(identity: str) -> flask.Response:
        health = {"State": "Enabled", "Health": box.knobs.supply}
        return answer({"PowerSupplies": [{"Name": "PSU 0", "Status": health}]})


def _complete(app: flask.Flask, box: Box) -> None:
    """What the emulator's own documents leave out."""

    def patch(name: str, extra: Callable[[], dict[str, Any]]) -> None:
        view: Callable[..., Any] = app.view_functions[name]

        def patched(**arguments: Any) -> Any:
            response = app.make_response(view(**arguments))
            if response.status_code != 200 or flask.request.method != "GET":
                return response
            return answer(json.loads(response.get_data()) | extra())

        app.view_functions[name] = patched

    patch("root_resource", lambda: {"Links": {"Sessions": {"@odata.id": SESSIONS}}})
    patch("UpdateService.update_service_resource", lambda: _service(box))
    bios = f"{V1}/Systems/{SYSTEM}/BIOS"
    patch("system_resource", lambda: {"Bios": {"@odata.id": bios}})
    app.view_functions["bios"] = lambda identity: answer({"Attributes": box.attributes})


def _service(box: Box) -> dict[str, Any]:
    push = {"MultipartHttpPushUri": f"{V1}/UpdateService/push"} if box.knobs.multipart else {}
    return push | box.knobs.service
