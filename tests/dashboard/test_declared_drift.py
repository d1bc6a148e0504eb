"""The document that was applied last is kept: what differs from it is told, and who changed it."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

from dashboard import declaring, panel_settings, settings_templates, teams
from dashboard.audit import Actor
from dashboard.choices import DeploymentStatus, RevisionOrigin, RevisionState
from dashboard.declaring import DocumentRefused
from dashboard.lifecycle import revisions
from dashboard.lifecycle.settings import change_node, change_panel
from dashboard.models import (
    AuditEntry,
    DeclaredDocument,
    Deployment,
    Node,
    Revision,
    SettingsTemplate,
    Team,
)
from dashboard.secrets import keep
from tests.dashboard.pages_cast import body, make_launch, make_model, make_node, operator, viewer

__all__ = ["operator", "viewer"]
pytestmark = pytest.mark.django_db

OPS, ADA = Actor("ops", via="command"), Actor("ada")
FITS = {"max_model_len": 1000, "kv_cache_tokens": 2048}

WHOLE = """\
tandem: 1
panel: {keep_log_days: 3}
nodes:
  box-1: {memory_floor_mb: 2048}
templates:
  contracts: {note: Long ones, settings: {max_batch_size: 4}}
deployments:
  smol:
    model: smollm2-135m
    settings: {max_model_len: 1000, kv_cache_tokens: 2048, max_batch_size: 8}
    fallback: {kv_cache_tokens: 2048}
teams:
  office: {members: [lin], deployments: [smol]}
"""


@pytest.fixture
def fleet() -> None:
    panel_settings.forget()
    make_node("box-1")
    make_model()
    User.objects.create_user("lin", password="correct horse")


def apply(text: str, *, prune: bool = False) -> int:
    return len(declaring.apply(declaring.load(text), OPS, prune=prune))


def test_a_document_makes_a_whole_fleet_and_then_nothing_more(fleet: None) -> None:
    assert apply(WHOLE) == 5
    smol = Deployment.objects.get()
    assert (smol.max_batch_size, smol.fallback_or_none is not None) == (8, True)
    assert panel_settings.current()["keep_log_days"] == 3
    assert Node.objects.get().memory_floor_mb == 2048
    assert SettingsTemplate.objects.get().values == {"max_batch_size": 4}
    assert teams.told(Team.objects.get())["deployments"] == ["smol"]
    made = Revision.objects.count(), AuditEntry.objects.count()
    assert apply(WHOLE) == 0
    assert (Revision.objects.count(), AuditEntry.objects.count()) == made
    assert DeclaredDocument.objects.count() == 1
    changed = Revision.objects.exclude(origin__in=(RevisionOrigin.FIRST,))
    assert {row.origin for row in changed} == {RevisionOrigin.FILE}


def test_what_is_exported_is_what_was_declared(fleet: None) -> None:
    apply(WHOLE)
    assert declaring.differences(declaring.load(declaring.export())) == []


def test_drift_names_each_field_and_who_changed_it(fleet: None, operator: Client) -> None:
    assert declaring.drift() is None
    apply(WHOLE)
    assert "Everything is as it was declared." in body(operator, "/settings/file/")
    change_node(Node.objects.get(), {"memory_floor_mb": 512}, ADA, why="Too little left")
    change_node(Node.objects.get(), {"power_cap_watts": 100}, Actor("bo"))
    change_panel({"keep_log_days": 9}, Actor("bo"))
    settings_templates.keep("contracts", "Long ones", {"max_batch_size": 2}, ADA)
    row = Deployment.objects.get()
    revisions.apply(revisions.propose(row, {"max_batch_size": 16}, actor=ADA), ADA)
    drift = declaring.drift()
    assert drift is not None
    told = {
        (one.difference.name, one.difference.setting): (
            one.difference.wanted,
            one.difference.now,
            one.who and one.who.by,
        )
        for one in drift.found
    }
    assert told == {
        ("Tandem", "keep_log_days"): ("3 d", "9 d", "bo"),
        ("box-1", "memory_floor_mb"): ("2048 MB", "512 MB", "ada"),
        ("box-1", "power_cap_watts"): ("none", "100 W", "bo"),
        ("contracts", "max_batch_size"): ("4", "2", "ada"),
        ("smol", "max_batch_size"): ("8", "16", "ada"),
    }
    text = body(operator, "/settings/file/")
    assert "Too little left" in text
    assert "2048 MB" in text


def test_a_document_that_does_not_hold_any_more_says_why(fleet: None, operator: Client) -> None:
    apply(WHOLE)
    Node.objects.all().delete()
    assert "There is no node box-1" in body(operator, "/settings/file/")


def test_all_that_is_wrong_is_told_at_once(fleet: None, operator: Client) -> None:
    text = "tandem: 1\npanel:\n  keep_log_days: 0\nnodes:\n  box-9: {}\n"
    with pytest.raises(DocumentRefused) as refused:
        apply(text)
    assert [problem.line for problem in refused.value.problems] == [3, 5]
    answer = operator.post("/settings/file/", {"document": text, "compare": ""})
    assert answer.status_code == 422
    assert answer.content.decode().count("Line ") == 2


def test_a_change_that_is_being_made_counts_as_made(fleet: None) -> None:
    row = Deployment.objects.create(
        name="smol", model=make_model("other"), settings=FITS, status=DeploymentStatus.READY
    )
    make_launch(row, Node.objects.get())
    Deployment.objects.update(wanted=True)
    text = "tandem: 1\ndeployments: {smol: {settings: {max_model_len: 900, kv_cache_tokens: 2048}}}"
    assert [one.way for one in declaring.changes(declaring.load(text))] == ["beside"]
    assert apply(text) == 1
    assert Revision.objects.filter(state=RevisionState.APPLYING).count() == 1
    assert apply(text) == 0


def test_what_cannot_be_made_leaves_nothing_behind(fleet: None) -> None:
    row = Deployment.objects.create(
        name="smol", model=make_model("other"), settings=FITS, status=DeploymentStatus.READY
    )
    make_launch(row, Node.objects.get())
    text = (
        "tandem: 1\npanel: {keep_log_days: 3}\ndeployments:\n"
        "  smol: {settings: {max_model_len: 1000, kv_cache_tokens: 2000000000}}\n"
    )
    with pytest.raises(DocumentRefused, match=r"Line 4, deployments\.smol: "):
        apply(text)
    assert panel_settings.in_effect()["keep_log_days"] == 7
    assert not DeclaredDocument.objects.exists()


def test_only_when_asked_does_it_remove_what_it_does_not_name(
    fleet: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    apply(WHOLE)
    file = tmp_path / "tandem.yaml"
    file.write_text("tandem: 1\ndeployments: {}\ntemplates: {}\nteams: {}\n")
    call_command("apply", str(file))
    assert Deployment.objects.exists()
    call_command("apply", str(file), prune=True)
    assert "deployment smol: ✓ -> –" in capsys.readouterr().out
    rows = (Deployment, SettingsTemplate, Team)
    assert not any(model._default_manager.exists() for model in rows)
    assert Node.objects.exists()


def test_secrets_stand_in_it_by_name(fleet: None) -> None:
    keep("hub", "hub-token", "hf_abcdefghijklmnop", ADA)
    apply("tandem: 1\nnodes: {box-1: {hub_token: hub}}\n")
    assert "hub_token: hub" in declaring.export()
    assert "hf_abcdefghijklmnop" not in declaring.export()


def test_a_file_is_compared_and_applied_like_the_text(fleet: None, operator: Client) -> None:
    file = SimpleUploadedFile("tandem.yaml", b"tandem: 1\npanel: {keep_log_days: 5}\n")
    answer = operator.post("/settings/file/", {"file": file, "document": "", "compare": ""})
    text = answer.content.decode()
    assert "panel: {keep_log_days: 5}" in text
    assert 'name="apply"' in text
    entered = {"document": "tandem: 1\npanel: {keep_log_days: 5}", "why": "Disk", "apply": ""}
    operator.post("/settings/file/", entered)
    row = Revision.objects.get(state=RevisionState.CURRENT, node=None, deployment=None)
    assert (row.by, row.why, row.values["keep_log_days"]) == ("ada", "Disk", 5)
    broken = SimpleUploadedFile("tandem.yaml", b"\xff\xfe")
    answer = operator.post("/settings/file/", {"file": broken, "document": "", "compare": ""})
    assert answer.status_code == 422
