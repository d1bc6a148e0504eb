"""The API reads and changes settings as the forms do, and describes itself."""

import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import get_resolver

from dashboard import panel_settings
from dashboard.configuration.drivers import OPTIONS
from dashboard.configuration.engine import ENGINE
from dashboard.models import ApiKey, Deployment, Node, Revision
from tests.dashboard.pages_cast import make_model, make_node, operator

__all__ = ["operator"]
pytestmark = pytest.mark.django_db

SMOL = "/api/v1/deployments/smol"
FITS = {"max_model_len": 1000, "kv_cache_tokens": 2048}


@pytest.fixture
def program(db: None) -> Client:
    panel_settings.forget()
    owner = User.objects.create_superuser("root", password="correct horse")
    key = ApiKey(user=owner, name="ci", manages=True)
    secret = key.issue()
    key.save()
    return Client(headers={"authorization": f"Bearer {secret}"})


@pytest.fixture
def smol(db: None) -> Deployment:
    settings = {**FITS, "max_batch_size": 8}
    return Deployment.objects.create(name="smol", model=make_model(), settings=settings)


def send(client: Client, method: str, path: str, **content: object) -> Any:
    answer = client.generic(method, path, json.dumps(content), content_type="application/json")
    return answer.status_code, answer.json()


def test_put_says_everything_and_patch_what_differs(program: Client, smol: Deployment) -> None:
    status, _told = send(program, "PATCH", f"{SMOL}/settings", settings={"token_budget": 128})
    smol.refresh_from_db()
    assert (status, smol.max_batch_size, smol.settings["token_budget"]) == (200, 8, 128)
    status, _told = send(program, "PUT", f"{SMOL}/settings", settings=FITS)
    smol.refresh_from_db()
    assert (status, smol.max_batch_size, smol.settings["token_budget"]) == (200, 32, 256)


def test_a_revision_may_be_kept_and_applied_later(program: Client, smol: Deployment) -> None:
    path = f"{SMOL}/settings?apply=0"
    status, told = send(program, "PATCH", path, settings={"max_batch_size": 4}, why="Try")
    assert (status, told["revision"]["state"], told["preview"]["way"]) == (
        200,
        "proposed",
        "stored",
    )
    smol.refresh_from_db()
    assert smol.max_batch_size == 8
    number = told["revision"]["number"]
    status, told = send(program, "POST", f"{SMOL}/revisions/{number}/apply")
    smol.refresh_from_db()
    assert (status, told["revision"]["state"], smol.max_batch_size) == (200, "current", 4)
    assert send(program, "POST", f"{SMOL}/revisions/{number}/apply")[0] == 409
    send(program, "POST", f"{SMOL}/revisions/1/back")
    smol.refresh_from_db()
    assert smol.max_batch_size == 8


def test_nodes_and_the_panel_have_revisions_and_a_way_back(program: Client) -> None:
    make_node("box-1")
    for path, name, old, new in (
        ("/api/v1/nodes/box-1", "memory_floor_mb", 1024, 2048),
        ("/api/v1/panel", "keep_log_days", 7, 3),
    ):
        dry = send(program, "PATCH", f"{path}/settings?dry_run=1", settings={name: new})
        assert dry[1]["changes"][0]["after"] == new
        status, told = send(program, "PATCH", f"{path}/settings", settings={name: new}, why="Why")
        assert (status, told["revision"]["origin"]) == (200, "api")
        rows = program.get(f"{path}/revisions").json()["revisions"]
        assert [(row["number"], row["settings"][name]) for row in rows] == [(2, new), (1, old)]
        assert send(program, "POST", f"{path}/revisions/1/back")[0] == 200
        assert program.get(f"{path}/settings").json()["settings"][name] == old
        assert send(program, "PATCH", f"{path}/settings", settings={name: -1})[0] == 422
    assert Node.objects.get().memory_floor_mb == 1024
    assert not Revision.objects.filter(state="proposed").exists()


def test_what_there_is_is_listed(program: Client, smol: Deployment) -> None:
    make_node("box-1")
    told = program.get("/api/v1/deployments").json()
    assert told == {"deployments": [{"name": "smol", "status": "stopped"}]}
    assert program.get("/api/v1/nodes").json()["nodes"][0]["name"] == "box-1"


def test_texts_come_in_the_language_that_is_asked_for(program: Client, smol: Deployment) -> None:
    english = program.get("/api/v1/settings/engine").json()["properties"]["tp"]
    chinese = program.get("/api/v1/settings/engine?language=zh-hans").json()["properties"]["tp"]
    assert english["description"] == "Ranks that share every layer."
    assert chinese["description"] != english["description"]
    path = f"{SMOL}/settings?language=zh-hans"
    told = send(program, "PATCH", path, settings={"tp": 0})[1]
    assert told["error"]["fields"]["tp"] != "This must be at least 1."


@pytest.mark.parametrize(
    ("query", "body", "status"),
    [
        ("?dry_run=perhaps", "{}", 400),
        ("", "[]", 400),
        ("", "{", 400),
        ("", '{"settings": []}', 400),
        ("", '{"content": [1]}', 400),
        ("", '{"content": {"model": "gone"}}', 422),
        ("", '{"settings": {"speed": 1}}', 422),
    ],
)
def test_what_cannot_be_read_is_refused(
    program: Client, smol: Deployment, query: str, body: str, status: int
) -> None:
    answer = program.patch(f"{SMOL}/settings{query}", body, content_type="application/json")
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_the_session_alone_changes_nothing(operator: Client, smol: Deployment) -> None:
    assert send(operator, "PATCH", f"{SMOL}/settings", settings={"max_batch_size": 4})[0] == 401
    assert operator.get(f"{SMOL}/settings").status_code == 200


def references(part: Any) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if "$ref" in part else set()
        return own.union(*map(references, part.values()))
    return set().union(*map(references, part)) if isinstance(part, list) else set()


def test_the_description_holds_every_address_and_every_reference(program: Client) -> None:
    told = program.get("/api/v1/openapi.json").json()
    assert told["openapi"] == "3.1.0"
    schemas = {f"#/components/schemas/{name}" for name in told["components"]["schemas"]}
    assert references(told) <= schemas
    routes = get_resolver().reverse_dict
    names = [name for name in routes if isinstance(name, str) and name.startswith("manage-")]
    written = {
        "/" + re.sub(r"%\((\w+)\)s", r"{\1}", routes.getlist(name)[0][0][0][0]) for name in names
    }
    assert {f"/api/v1{path}" for path in told["paths"]} == written - {"/api/v1/openapi.json"}
    operations = [one for path in told["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    for path, methods in told["paths"].items():
        for one in methods.values():
            inside = {part["name"] for part in one["parameters"] if part["in"] == "path"}
            assert inside == set(re.findall(r"{(\w+)}", path))
            assert {"summary", "responses"} <= one.keys()
            assert "200" in one["responses"]


def test_each_driver_is_asked_for_what_it_knows() -> None:
    named = {name for options in OPTIONS.values() for name in options}
    assert named <= {one.name for one in ENGINE}
    for driver in ("embedded", *OPTIONS):
        assert "dp" in ENGINE.known_to(driver)
    assert "rank_weights" not in ENGINE.known_to("vllm")
    assert ENGINE.known_to("embedded").defaults == ENGINE.defaults
