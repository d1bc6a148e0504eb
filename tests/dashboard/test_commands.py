"""`manage.py api_key` and `manage.py node_token` print one secret and nothing else."""

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from dashboard import lifecycle
from dashboard.models import ApiKey, AuditEntry, Node

pytestmark = pytest.mark.django_db


def output(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    lines = out.getvalue().splitlines()
    assert len(lines) == 1
    return lines[0]


def test_an_api_key_is_shown_once_and_only_its_hash_is_kept() -> None:
    get_user_model().objects.create_user("admin")
    key = output("api_key", "--user=admin", "--name=ci")
    row = ApiKey.objects.get()
    assert (row.name, row.user.get_username(), row.hash) == ("ci", "admin", ApiKey.hash_of(key))
    assert key not in str(vars(row).values())


def test_a_key_for_nobody_is_refused() -> None:
    with pytest.raises(CommandError, match="no user 'ghost'"):
        call_command("api_key", "--user=ghost", "--name=ci")


def test_a_node_gets_a_token_and_later_a_new_one() -> None:
    first = output("node_token", "--name=box", "--address=10.0.0.1")
    second = output("node_token", "--name=box")
    assert first != second
    assert lifecycle.node_with_token(first) is None
    assert lifecycle.node_with_token(second) == Node.objects.get()
    assert Node.objects.get().address == "10.0.0.1"


def test_a_new_node_needs_its_address() -> None:
    with pytest.raises(CommandError, match="--address"):
        call_command("node_token", "--name=box")


def test_what_they_make_is_in_the_audit_trail() -> None:
    get_user_model().objects.create_user("admin")
    secrets = [
        output("api_key", "--user=admin", "--name=ci"),
        output("node_token", "--name=box", "--address=10.0.0.1"),
        output("node_token", "--name=box"),
    ]
    entries = AuditEntry.objects.filter(via="command").order_by("pk")
    assert [(one.action, one.target) for one in entries] == [
        ("key.create", "ci"),
        ("node.add", "box"),
        ("node.token", "box"),
    ]
    assert not [one for one in secrets if one in str(list(entries.values()))]


def test_a_command_before_the_first_start_says_what_is_missing_in_a_sentence(
    tmp_path: Path,
) -> None:
    root = Path(__file__).parents[2]
    known = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    ran = subprocess.run(
        [sys.executable, "manage.py", "export"],
        cwd=root,
        env={**known, "TANDEM_STATE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[0].startswith("DATABASE_URL is not set.")
    assert "Traceback" not in ran.stderr
