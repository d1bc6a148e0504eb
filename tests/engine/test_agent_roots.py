"""Where an agent looks for hardware can be set, and nonsense stops it at the start."""

from pathlib import Path

import pytest

from engine.agent.roots import read_roots
from engine.errors import ConfigError


def test_the_kernels_own_folders_unless_others_are_named(tmp_path: Path) -> None:
    assert read_roots({}) == (Path("/sys"), Path("/dev"), Path("/proc"))
    named = read_roots({"TANDEM_SYSFS_ROOT": str(tmp_path)})
    assert named == (tmp_path, Path("/dev"), Path("/proc"))


@pytest.mark.parametrize("value", ["relative", "/no/such/folder", __file__])
def test_anything_but_a_folder_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="TANDEM_DEV_ROOT"):
        read_roots({"TANDEM_DEV_ROOT": value})
