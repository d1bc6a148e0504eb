"""Each group is carried by shared memory where all its ranks are on one host, else by sockets."""

from collections.abc import Callable
from itertools import count

import pytest

from engine.errors import RankError
from engine.parallel import Mesh, native, sharing
from tests.engine.group_threads import on_meshes


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(native, "COMPILERS", ("no-such-compiler",))


def on_hosts(*names: str) -> Callable[[], str]:
    """Each rank that asks is on the next of these hosts."""
    asked = count()
    return lambda: names[next(asked) % len(names)]


def carrier(mesh: Mesh) -> str:
    return mesh.transport


def test_one_host_shares_memory() -> None:
    assert on_meshes("tp=2,pp=2", "auto", carrier) == ["shm"] * 4


def test_a_single_rank_needs_nothing() -> None:
    assert on_meshes("tp=1", "shm", carrier) == ["none"]


@pytest.mark.parametrize("transport", ["tcp", "gloo"])
def test_what_was_chosen_is_used(transport: str) -> None:
    assert on_meshes("tp=2", transport, carrier) == [transport] * 2  # type: ignore[arg-type]  # of the two


def test_two_hosts_use_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "host_identity", on_hosts("one", "two"))
    assert on_meshes("tp=2", "auto", carrier) == ["tcp"] * 2


def test_shared_memory_between_two_hosts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "host_identity", on_hosts("one", "two"))
    with pytest.raises(RankError, match=r"on different hosts, .* choose the transport auto or tcp"):
        on_meshes("tp=2", "shm", carrier)


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_ranks_use_sockets() -> None:
    assert on_meshes("tp=2", "auto", carrier) == ["tcp"] * 2


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_shared_memory_names_the_remedy() -> None:
    with pytest.raises(RankError, match=r"apt install gcc libc6-dev.* or choose the transport tcp"):
        on_meshes("tp=2", "shm", carrier)


def test_a_compiler_that_fails_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(native, "FLAGS", (*native.FLAGS, "-no-such-flag"))
    with pytest.raises(RankError, match=r"It said: .*no-such-flag"):
        on_meshes("tp=2", "shm", carrier)


def test_ranks_that_cannot_attach_all_use_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> int:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(sharing, "_hand_out", refuse)
    monkeypatch.setattr(sharing, "ATTACH_SECONDS", 2.0)
    assert on_meshes("tp=3", "auto", carrier) == ["tcp"] * 3
