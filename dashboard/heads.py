"""What a head answers when the control plane asks it, without any agent in between. Blocking."""

import http.client
import json

import msgspec

from dashboard.models import Replica
from engine.protocol.stats import EngineStats

ASK_SECONDS = 1.0
CANARY_SECONDS = 20.0


def ask_stats(replica: Replica) -> EngineStats | None:
    """None when nobody answers there."""
    try:
        _status, body = _ask(replica, "GET", "/stats", None, ASK_SECONDS)
        return msgspec.json.decode(body, type=EngineStats)
    except (OSError, http.client.HTTPException, msgspec.MsgspecError):
        return None


def ask_for_a_token(replica: Replica, model: str) -> str:
    """Empty when it answered, else what it said instead."""
    request = {"model": model, "prompt": "Hello", "max_tokens": 1, "temperature": 0}
    try:
        status, body = _ask(replica, "POST", "/v1/completions", request, CANARY_SECONDS)
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    return "" if status == 200 else f"HTTP {status}: {body.decode(errors='replace')[:200]}"


def post(replica: Replica, path: str, body: object, seconds: float) -> tuple[int, bytes]:
    """Status and body. Raises OSError or HTTPException."""
    return _ask(replica, "POST", path, body, seconds)


def put(replica: Replica, path: str, body: object) -> tuple[int, bytes]:
    """The same, for what is set."""
    return _ask(replica, "PUT", path, body, ASK_SECONDS)


def _ask(
    replica: Replica, method: str, path: str, body: object, seconds: float
) -> tuple[int, bytes]:
    """Status and body, at most 1 MB. Raises OSError or HTTPException."""
    connection = http.client.HTTPConnection(replica.host, replica.http_port, timeout=seconds)
    headers = {"Authorization": f"Bearer {replica.token}", "Content-Type": "application/json"}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read(2**20)
    finally:
        connection.close()
