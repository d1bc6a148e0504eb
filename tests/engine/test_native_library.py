"""What is compiled is made once, by whoever comes first, where nobody else can write."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.parallel import native


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tandem"


def test_ranks_that_start_together_may_all_compile(cache: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        libraries = list(pool.map(lambda _rank: native.load_library(), range(4)))
    assert {library.tandem_bytes(2) for library in libraries} == {libraries[0].tandem_bytes(2)}
    assert [file.name for file in cache.iterdir()] == [f"shared-{native.library_key()}.so"]
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_compiled_file_is_used_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    native.load_library()
    monkeypatch.setattr(native, "COMPILERS", ())
    native.load_library()
    assert cache.is_dir()


def test_a_folder_that_others_can_enter_is_passed_over(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache.mkdir()
    cache.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    native.load_library()
    assert not list(cache.iterdir())
    assert list((tmp_path / "home" / ".cache" / "tandem").iterdir())


def test_another_source_is_another_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = native.library_key()
    changed = tmp_path / "shared.c"
    changed.write_bytes(native.SOURCE.read_bytes() + b"/* a comment */")
    monkeypatch.setattr(native, "SOURCE", changed)
    assert native.library_key() != before
