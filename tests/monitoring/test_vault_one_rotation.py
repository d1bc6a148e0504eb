"""Of two who rotate secrets at once one is told to wait, and no key is lost."""

from pathlib import Path

import pytest
from django.core.management import CommandError

from monitoring import vault
from tests.monitoring.test_vault_rotation import furnish, opened, run, vault_file

__all__ = ["vault_file"]
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("second", ["--new-key", "--drop-old"])
def test_a_second_rotation_waits_for_the_first(vault_file: Path, second: str) -> None:
    vault.write_keys(vault_file, [vault.new_key(), vault.new_key()])
    user, kept = furnish(), vault_file.read_text()
    with vault.one_rotation(), pytest.raises(CommandError, match="wait"):
        run(second)
    assert vault_file.read_text() == kept
    before = opened(user)
    run(second)
    assert opened(user) == before
    assert vault_file.read_text() != kept


def test_a_folder_that_is_not_there_is_named(vault_file: Path) -> None:
    vault_file.parent.rmdir()
    with pytest.raises(CommandError, match="Start Tandem once"):
        run("--new-key")
