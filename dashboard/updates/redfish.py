"""Updating through a BMC: push or fetch, tasks judged by their state, resets.

Specification: DMTF DSP0266 (Redfish), UpdateService and Task schemas. TLS is verified as it is for
reading (`monitoring.probes.redfish.client`).
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec
import requests
import urllib3.exceptions as wire
from requests_toolbelt import MultipartEncoder, MultipartEncoderMonitor

from monitoring.probes.outside import SourceError
from monitoring.probes.redfish.client import (
    FAILED,
    FORBIDDEN,
    NO_SESSION,
    REDIRECT,
    REFUSED,
    STRANGE,
    UNTRUSTED,
    VerifiedTls,
    address_of,
    said,
)
from monitoring.samples import gettext_noop
from monitoring.sources import RedfishSource

ASK_SECONDS = 15.0
PUSH_SECONDS = 900.0
ANSWER_SECONDS = 300.0
"""In which a BMC looks through an image before it says whether it takes it."""
SLOW_PUSH = gettext_noop("The image could not be sent within 15 min.")
RUNNING = frozenset({"New", "Starting", "Running", "Pending", "Stopping", "Service"})
GOOD = frozenset({"Completed"})
NOT_UP = frozenset({502, 503, 504})
NEEDS_PERSON = frozenset({"UserIntervention"})


class Away(SourceError):
    """Nothing answered; a BMC that starts itself anew does that for a while."""


class Refused(SourceError):
    """The BMC understood and does not want to; the reason is its own words."""


class Reply(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: dict[str, Any] | None


class Task(msgspec.Struct, frozen=True):
    """A task as it is now. `state` is a TaskState; empty where the resource is gone."""

    state: str
    percent: float | None = None
    words: str = ""
    """What it says of itself, for people."""
    awaits_reset: bool = False


class UpdateClient:
    """Signed in for as long as the `with` lasts. Raises SourceError, or Away."""

    def __init__(self, source: RedfishSource) -> None:
        self._source = source
        self._base = address_of(source.url)
        self._adapter = VerifiedTls(source)
        self._http = requests.Session()
        self._http.trust_env = False
        self._http.mount("https://", self._adapter)
        self._session = ""

    def __enter__(self) -> Self:
        try:
            self._sign_in()
        except BaseException:
            self._adapter.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._session:
                self._send("DELETE", self._session, ASK_SECONDS)
        except SourceError:
            pass  # It forgets the session by itself.
        finally:
            self._adapter.close()

    def _sign_in(self) -> None:
        if self._source.auth == "basic":
            self._http.auth = (self._source.username, self._source.password)
            if self.get("/redfish/v1/Systems").status in (401, 403):
                raise SourceError(REFUSED)
            return
        account = {"UserName": self._source.username, "Password": self._source.password}
        reply = self._send("POST", "/redfish/v1/SessionService/Sessions", ASK_SECONDS, json=account)
        _check_up(reply)
        token = reply.headers.get("x-auth-token", "")
        if reply.status in (401, 403):
            raise SourceError(REFUSED)
        if not token:
            raise SourceError(NO_SESSION)
        self._http.headers["X-Auth-Token"] = token
        self._session = _path(reply.headers.get("location", ""))

    def get(self, path: str) -> Reply:
        """Raises Away also for a BMC that says it is not up yet."""
        return _check_up(self._send("GET", path, ASK_SECONDS))

    def post(self, path: str, body: dict[str, Any]) -> Reply:
        """Raises Refused with the BMC's own words for an error."""
        return _accepted(self._send("POST", path, ASK_SECONDS, json=body))

    def push(
        self,
        uri: str,
        parameters: dict[str, Any],
        file: Path,
        name: str,
        show: Callable[[float], None] = lambda percent: None,
    ) -> Reply:
        """Multipart HTTP push (DSP2062): the parameters, then the image, read as it is sent. `show`
        is told how far that is. Raises Away when all of it takes too long."""
        with file.open("rb") as image:
            form = MultipartEncoder(
                [
                    ("UpdateParameters", (None, json.dumps(parameters), "application/json")),
                    ("UpdateFile", (name, image, "application/octet-stream")),
                ]
            )
            until = time.monotonic() + PUSH_SECONDS

            def sent(so_far: MultipartEncoderMonitor) -> None:
                if time.monotonic() > until:
                    raise Away(SLOW_PUSH)
                show(100.0 * so_far.bytes_read / max(1, so_far.len))

            body = MultipartEncoderMonitor(form, sent)
            headers = {"Content-Type": form.content_type}
            reply = self._send(
                "POST", uri, PUSH_SECONDS, ANSWER_SECONDS, data=body, headers=headers
            )
            return _accepted(reply)

    def task(self, path: str) -> Task:
        """Decided by TaskState, whatever the HTTP status; a state of nothing: it is gone."""
        reply = self.get(path)
        body = reply.body or {}
        state = body.get("TaskState")
        if isinstance(state, str):
            return _task(state, body)
        if reply.status in (404, 410):
            return Task("")
        if reply.status == 202:
            return Task("Running")
        if reply.status in (200, 204):
            return Task("Completed", 100.0)
        raise SourceError(STRANGE)

    def tasks(self) -> list[str]:
        """Newest first, as they are numbered."""
        paths = [path_in(one) for one in listed(self.get("/redfish/v1/TaskService/Tasks"))]
        return [one for one in reversed(paths) if one]

    def _send(
        self, method: str, path: str, seconds: float, silence: float = 60.0, **what: Any
    ) -> Reply:
        self._adapter.until = time.monotonic() + seconds
        try:
            answer = self._http.request(
                method, self._base + path, timeout=(10.0, silence), allow_redirects=False, **what
            )
        except requests.RequestException as error:
            raise _wrapped(error) from error
        except (wire.HTTPError, OSError) as error:  # While its answer was read.
            raise Away(said(error).reason) from error
        if 300 <= answer.status_code < 400:
            raise SourceError(REDIRECT)
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return Reply(answer.status_code, headers, _body(answer))


def _wrapped(error: requests.RequestException) -> SourceError:
    """A certificate that is not trusted stays so; a handshake that breaks off does not."""
    reason = said(error).reason
    return SourceError(reason) if reason == UNTRUSTED else Away(reason)


def _check_up(reply: Reply) -> Reply:
    if reply.status in NOT_UP:
        raise Away(FAILED)
    return reply


def _body(answer: requests.Response) -> dict[str, Any] | None:
    try:
        body = answer.json() if answer.content else None
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _accepted(reply: Reply) -> Reply:
    if reply.status < 300:
        return reply
    if reply.status == 401:
        raise SourceError(REFUSED)
    if reply.status == 403:
        raise SourceError(FORBIDDEN)
    raise Refused(f"HTTP {reply.status}: {_words((reply.body or {}).get('error')) or '?'}")


def _task(state: str, body: dict[str, Any]) -> Task:
    percent = body.get("PercentComplete")
    told = isinstance(percent, int | float) and 0 <= percent <= 100
    messages = body.get("Messages")
    found = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    ids = [str(one.get("MessageId", "")) for one in found]
    return Task(
        state,
        float(percent or 0) if told else None,
        "; ".join(filter(None, (_words(one) for one in found)))[:300],
        any("AwaitToActivate" in one or "ResetRequired" in one for one in ids),
    )


def listed(reply: Reply) -> list[dict[str, Any]]:
    """The members of a collection; what is no resource is left out."""
    members = (reply.body or {}).get("Members")
    return [one for one in members if isinstance(one, dict)] if isinstance(members, list) else []


def path_in(link: dict[str, Any]) -> str:
    """That it leads to; empty where that is none of this BMC's."""
    target = link.get("@odata.id")
    return target if isinstance(target, str) and target.startswith("/") else ""


def _words(message: object) -> str:
    if not isinstance(message, dict):
        return ""
    own = message.get("Message") or message.get("message") or message.get("MessageId")
    extended = message.get("@Message.ExtendedInfo")
    if isinstance(extended, list) and extended and isinstance(extended[0], dict):
        own = extended[0].get("Message") or own
    return str(own or message.get("code") or "")[:200]


def _path(location: str) -> str:
    """Of a Location header, which may name the host: only ours is ever asked."""
    path = urlsplit(location).path
    return path if path.startswith("/") else ""


def task_path(reply: Reply) -> str:
    """Where to look how an accepted request goes: the task, else its monitor, else nowhere."""
    body = reply.body or {}
    own = body.get("@odata.id")
    if isinstance(own, str) and own.startswith("/") and "TaskState" in body:
        return own
    return _path(reply.headers.get("location", ""))
