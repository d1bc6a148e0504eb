"""Secrets are sealed with keys outside the database, which can be changed without losing one."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from pytest_django import Settings

from dashboard import env, resealing
from dashboard.audit import Actor
from dashboard.models import AuditEntry, Node, Secret
from dashboard.secrets import SecretError, keep, reveal
from dashboard.up.options import prepare_state
from monitoring import vault
from monitoring.models import Channel, NodeSource
from monitoring.sources import RedfishSource

pytestmark = pytest.mark.django_db

PASSWORD = "correct-horse-battery"
SOMEBODY = Actor("ada")


@pytest.fixture(autouse=True)
def vault_file(tmp_path: Path, settings: Settings) -> Path:
    settings.VAULT_FILE = tmp_path / "vault-keys"
    settings.VAULT_KEYS = []
    path: Path = settings.VAULT_FILE
    return path


def furnish() -> User:
    """One of everything that is sealed."""
    node = Node.objects.create(name="box-a", address="10.0.0.5")
    source = NodeSource(node=node)
    source.take(
        RedfishSource(name="bmc", url="https://10.0.0.6", username="root", password=PASSWORD)
    )
    source.save()
    Channel.objects.create(name="ops", kind="webhook", sealed=vault.seal({"url": PASSWORD}))
    keep("hub", "hub-token", PASSWORD, SOMEBODY)
    user = User.objects.create_user("grace")
    TOTP.activate(user, "JBSWY3DPEHPK3PXP")
    RecoveryCodes.activate(user)
    return user


def opened(user: User) -> list[str]:
    """The same things, read again."""
    totp = Authenticator.objects.get(user=user, type="totp")
    codes = Authenticator.objects.get(user=user, type="recovery_codes")
    return [
        NodeSource.objects.get().secrets["password"],
        vault.unseal(Channel.objects.get().sealed)["url"],
        reveal("hub"),
        vault.unseal_text(totp.data["secret"]),
        *codes.wrap().get_unused_codes(),
    ]


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("rotate_secrets", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def test_what_an_older_version_sealed_is_still_read_and_sealed_anew(vault_file: Path) -> None:
    user = furnish()
    assert vault.place() == "secret key"
    before = opened(user)
    vault.write_keys(vault_file, [vault.new_key()])
    assert opened(user) == before
    with pytest.raises(CommandError):
        run("--check")
    said = run()
    assert "1 sealed anew: secrets" in said
    assert len(vault.keys()) == 2, "the key that was there is used, no second one made"
    assert opened(user) == before
    assert "Everything is sealed with the first key." in run("--check")


def test_after_a_rotation_the_old_key_may_go(vault_file: Path) -> None:
    vault.write_keys(vault_file, [vault.new_key()])
    user = furnish()
    before = opened(user)
    [old] = vault_file.read_text().split()
    assert "A new key was made." in run()
    assert "Old keys forgotten: 1." in run("--drop-old")
    assert old not in vault_file.read_text()
    assert opened(user) == before
    assert AuditEntry.objects.filter(action="secret.rotate").exists()


def test_a_rotation_that_dies_in_the_middle_loses_nothing_and_can_be_run_again(
    vault_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write_keys(vault_file, [vault.new_key()])
    user = furnish()
    before = opened(user)
    real, count = vault.reseal, 0

    def dies(sealed: str) -> str:
        nonlocal count
        count += 1
        if count > 2:
            raise KeyboardInterrupt
        return real(sealed)

    monkeypatch.setattr(vault, "reseal", dies)
    with pytest.raises(KeyboardInterrupt):
        run()
    monkeypatch.undo()
    assert opened(user) == before
    assert sum(resealing.look().old.values()) == 5, "none of it happened"
    with pytest.raises(CommandError, match="still needed"):
        run("--drop-old")
    keys = vault_file.read_text()
    run()
    assert vault_file.read_text() == keys, "the second run finishes with the key of the first"
    assert not resealing.look().old
    assert opened(user) == before


def test_keys_of_the_environment_come_first_and_are_made_by_nobody(
    settings: Settings, vault_file: Path
) -> None:
    vault.write_keys(vault_file, [vault.new_key()])
    user = furnish()
    before = opened(user)
    settings.VAULT_KEYS = [vault.new_key()]
    assert vault.place() == "environment"
    run()
    assert opened(user) == before
    vault_file.unlink()
    assert opened(user) == before
    with pytest.raises(CommandError, match="TANDEM_VAULT_KEYS"):
        run("--new-key")


def test_what_has_lost_its_key_is_named_and_asked_for_again(
    vault_file: Path, settings: Settings
) -> None:
    vault.write_keys(vault_file, [vault.new_key()])
    keep("hub", "hub-token", PASSWORD, SOMEBODY)
    vault.write_keys(vault_file, [vault.new_key()])
    with pytest.raises(SecretError, match="Enter it again"):
        reveal("hub")
    assert "Cannot be read, its key is gone; enter it again: secrets: hub" in run()
    keep("hub", "hub-token", PASSWORD, SOMEBODY)
    assert reveal("hub") == PASSWORD


@pytest.mark.parametrize("value", ["short", "x" * 44, "é" * 44, "AAAA,BBBB"])
def test_a_malformed_key_stops_the_start_and_is_not_repeated(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYS", value)
    with pytest.raises(ImproperlyConfigured) as caught:
        env.vault_keys("KEYS")
    assert value not in str(caught.value)


def test_up_makes_a_key_of_its_own_once(tmp_path: Path) -> None:
    prepare_state(tmp_path / "state")
    path = tmp_path / "state" / "secrets" / "vault-keys"
    first = path.read_text()
    assert vault.check_key(first.strip(), "it")
    assert path.stat().st_mode & 0o077 == 0
    prepare_state(tmp_path / "state")
    assert path.read_text() == first


def test_every_sealed_column_is_found() -> None:
    """One that is added later is rotated without a word from anybody."""
    furnish()
    kinds: dict[str, Any] = resealing.look().current
    assert len(kinds) == 5
    assert Secret.objects.get().hint == PASSWORD[-3:]
