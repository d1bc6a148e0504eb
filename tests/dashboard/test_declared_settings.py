"""A setting that is declared once appears in the form, the API, the file and the documentation."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from dashboard import declaring
from dashboard.audit import Actor
from dashboard.configuration.declared import Setting
from dashboard.configuration.engine import ENGINE
from dashboard.configuration.node import NODE
from dashboard.configuration.reference import page
from dashboard.declaring import DocumentRefused
from dashboard.models import ApiKey, AuditEntry, Deployment, Node, Revision
from tests.dashboard.pages_cast import body, make_model, make_node, operator, viewer

__all__ = ["operator", "viewer"]

pytestmark = pytest.mark.django_db

NEW = Setting(
    name="spill_gb",
    kind="whole",
    label="spill",
    help="Gigabytes of conversations kept on disk.",
    group="limits",
    default=0,
    unit="GB",
    low=0,
    high=4096,
)
NEW_OF_NODES = Setting(
    name="rack_unit", kind="text", label="rack unit", group="memory", default="", drivers=()
)


@pytest.fixture
def added() -> Iterator[None]:
    ENGINE.add(NEW)
    NODE.add(NEW_OF_NODES)
    try:
        yield
    finally:
        ENGINE.remove(NEW.name)
        NODE.remove(NEW_OF_NODES.name)


@pytest.fixture
def deployment() -> Deployment:
    kept = {"max_model_len": 1000, "kv_cache_tokens": 2048}
    return Deployment.objects.create(name="smol", model=make_model(), settings=kept)


@pytest.fixture
def program(db: None) -> Client:
    """One that manages, with the key of an administrator."""
    owner = User.objects.create_superuser("root", password="correct horse")
    key = ApiKey(user=owner, name="ci", manages=True)
    secret = key.issue()
    key.save()
    return Client(headers={"authorization": f"Bearer {secret}"})


def patch(client: Client, path: str, **content: object) -> tuple[int, dict[str, object]]:
    answer = client.patch(path, json.dumps(content), content_type="application/json")
    return answer.status_code, answer.json()


def test_one_declaration_is_enough(
    added: None, operator: Client, program: Client, deployment: Deployment
) -> None:
    make_node("box-1")
    assert 'name="spill_gb"' in body(operator, "/deployments/smol/settings/")
    assert 'name="spill_gb"' in body(operator, "/deployments/new/")
    assert 'name="rack_unit"' in body(operator, "/nodes/box-1/settings/")
    assert "Gigabytes of conversations" in body(operator, "/settings/reference/")
    assert (
        "| `spill_gb` | Spill. Gigabytes of conversations kept on disk. | 0 … 4096 GB |" in page()
    )
    schema = program.get("/api/v1/openapi.json").json()["components"]["schemas"]["engine"]
    assert schema["properties"]["spill_gb"]["maximum"] == 4096
    path = "/api/v1/deployments/smol/settings"
    status, told = patch(program, path, settings={"spill_gb": 5000})
    assert (status, told["error"]["fields"]) == (422, {"spill_gb": "This must be at most 4096."})  # type: ignore[index]
    assert patch(program, path, settings={"spill_gb": 8}, why="More")[0] == 200
    assert Revision.objects.order_by("-pk")[0].values["spill_gb"] == 8
    document = yaml.safe_load(declaring.export())
    assert document["deployments"]["smol"]["settings"]["spill_gb"] == 8
    document["deployments"]["smol"]["settings"]["spill_gb"] = 16
    document["nodes"]["box-1"] = {"rack_unit": "U12"}
    declaring.apply(declaring.load(yaml.safe_dump(document)), Actor("ops"))
    assert Deployment.objects.get().settings["spill_gb"] == 16
    assert Node.objects.get().settings["rack_unit"] == "U12"


def test_the_documentation_is_what_the_declarations_say() -> None:
    kept = Path(settings.BASE_DIR) / "docs" / "settings.md"
    assert kept.read_text(encoding="utf-8") == page(), "Run manage.py settings_docs."


def test_what_is_exported_changes_nothing_when_it_is_applied(deployment: Deployment) -> None:
    make_node("box-1")
    document = declaring.load(declaring.export())
    assert declaring.differences(document) == []
    assert declaring.apply(document, Actor("ops")) == []
    assert not Revision.objects.filter(state="proposed").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a list", "must begin with"),
        ("tandem: 2", "must begin with"),
        ("tandem: 1\npanel: {language: en}\npanel: {}", "Line 3: panel stands here a second time"),
        ("tandem: 1\nnodes: [", "Line 2"),
        ("tandem: 1\nboxes: {}", "boxes: there is no such entry"),
        ("tandem: 1\nnodes: 3", "nodes: names with values are expected"),
        ("tandem: 1\nnodes: {box-9: {}}", "There is no node box-9"),
        ("tandem: 1\npanel: {language: klingon}", "panel.language: This must be one of"),
        ("tandem: 1\npanel: {colour: red}", "panel.colour: There is no setting colour"),
        ("tandem: 1\ndeployments: {smol: {run: maybe}}", "deployments.smol.run"),
        ("tandem: 1\ndeployments: {smol: {model: gone}}", "There is no model gone"),
        (
            "tandem: 1\ndeployments:\n smol:\n  settings:\n   tp: 0",
            "Line 5, deployments.smol.settings.tp",
        ),
        ("tandem: 1\ndeployments: {smol: {fallback: {speed: 1}}}", "smol.fallback.speed: there is"),
        ("tandem: 1\ndeployments: {smol: 3}", "deployments.smol: names with values"),
        ("tandem: 1\ndeployments: {a b: {model: smollm2-135m}}", "a name has letters"),
        ("tandem: 1\ntemplates: {x: {note: [1]}}", "templates.x.note: this must be a text"),
        ("tandem: 1\nteams: {office: {members: [nobody]}}", "there is no nobody"),
        ("tandem: 1\nnodes: &a {}\npanel: *a", "a reference to another place"),
        ("tandem: 1\n1: {}", "a name must be a text"),
        ("tandem: 1\nnodes: !!set {}", "Line 2"),
        ("!!python/object/apply:os.system ['true']", "Line 1"),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_nothing_changes(
    deployment: Deployment, text: str, words: str
) -> None:
    with pytest.raises(DocumentRefused) as refused:
        declaring.apply(declaring.load(text), Actor("ops"))
    assert words in str(refused.value)
    assert not AuditEntry.objects.exists()


def test_a_dry_run_ends_with_what_is_pending(
    deployment: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tandem.yaml"
    file.write_text("tandem: 1\npanel: {language: zh-hans}\n")
    with pytest.raises(SystemExit) as ended:
        call_command("apply", str(file), dry_run=True)
    assert ended.value.code == 3
    assert "panel Tandem language: English -> Simplified Chinese" in capsys.readouterr().out
    call_command("apply", str(file))
    call_command("apply", str(file), dry_run=True)
    assert "Nothing differs." in capsys.readouterr().out
    with pytest.raises(CommandError) as refused:
        call_command("apply", str(tmp_path / "none.yaml"))
    assert refused.value.returncode == 2


def test_a_key_that_only_asks_changes_nothing(deployment: Deployment) -> None:
    owner = User.objects.create_superuser("root", password="correct horse")
    key = ApiKey(user=owner, name="chat")
    secret = key.issue()
    key.save()
    client = Client(headers={"authorization": f"Bearer {secret}"})
    assert client.get("/api/v1/deployments/smol/settings").status_code == 403
    assert patch(client, "/api/v1/deployments/smol/settings")[0] == 403
    assert patch(Client(), "/api/v1/deployments/smol/settings")[0] == 401


def test_a_dry_run_of_the_api_keeps_nothing(program: Client, deployment: Deployment) -> None:
    path = "/api/v1/deployments/smol/settings?dry_run=1"
    status, told = patch(program, path, settings={"kv_cache_tokens": 4096})
    assert (status, told["way"]) == (200, "stored")
    assert Revision.objects.filter(state="proposed").count() == 0


def test_the_page_compares_and_applies(operator: Client, deployment: Deployment) -> None:
    text = (
        "tandem: 1\ndeployments: {smol: {settings: {max_model_len: 1000, kv_cache_tokens: 4096}}}"
    )
    answer = operator.post("/settings/file/", {"document": text, "compare": ""})
    assert "4096 tokens" in answer.content.decode()
    operator.post("/settings/file/", {"document": text, "apply": ""})
    assert Deployment.objects.get().kv_cache_tokens == 4096
    answer = operator.post("/settings/file/", {"document": "tandem: 9", "compare": ""})
    assert answer.status_code == 422
