"""A model file is taken whole or not at all."""

import hashlib
from pathlib import Path

import pytest

from dashboard import catalogue
from dashboard.catalogue import bundled_model_path, import_model
from dashboard.errors import ImportRefused
from dashboard.models import Model
from engine.checkpoint import Checkpoint
from tests.dashboard.tiny_gguf import write_model

pytestmark = pytest.mark.django_db


def test_a_sound_file_is_added_with_what_it_says_of_itself(tmp_path: Path) -> None:
    path = write_model(tmp_path / "tiny.gguf")
    model = import_model(path)
    assert (model.name, model.title, model.license) == ("tiny-llama", "Tiny Llama", "apache-2.0")
    assert model.revision == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (model.size_bytes, model.quantization) == (path.stat().st_size, "F32")
    assert (model.shape.num_layers, model.shape.num_kv_heads) == (2, 1)
    assert Model.objects.get().shape == model.shape


def test_the_bundled_model_is_accepted() -> None:
    model = import_model(bundled_model_path(), name="smollm2")
    assert (model.shape.num_heads, model.shape.num_kv_heads) == (9, 3)
    assert model.quantization == "Q4_1"


def test_the_same_file_twice_is_one_row(tmp_path: Path) -> None:
    path = write_model(tmp_path / "tiny.gguf")
    assert import_model(path) == import_model(path)
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(path.read_bytes())
    with pytest.raises(ImportRefused, match="already, as tiny-llama"):
        import_model(copy)
    assert Model.objects.count() == 1


def test_two_imports_of_one_file_at_once_are_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_model(tmp_path / "tiny.gguf")
    rows: list[Model] = []

    def overtaken(checkpoint: Checkpoint) -> str:
        monkeypatch.undo()
        rows.append(import_model(path))
        return rows[0].name

    monkeypatch.setattr(catalogue, "_name_for", overtaken)
    assert [import_model(path)] == rows


def test_another_file_cannot_take_a_name_that_is_used(tmp_path: Path) -> None:
    import_model(write_model(tmp_path / "one.gguf"))
    other = write_model(tmp_path / "two.gguf", name="Other")
    with pytest.raises(ImportRefused, match="give another name"):
        import_model(other, name="tiny-llama")
    assert Model.objects.count() == 1


def test_a_path_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in ("~no-such-user/model", tmp_path / "loop"):
        with pytest.raises(ImportRefused, match="Cannot open"):
            import_model(path)


def broken(folder: Path, how: str) -> Path:
    path = folder / f"{how}.gguf"
    if how == "missing-tensor":
        return write_model(path, without={"blk.1.ffn_up.weight"})
    if how == "unknown-architecture":
        return write_model(path, architecture="mamba")
    whole = write_model(path).read_bytes()
    if how == "truncated":
        path.write_bytes(whole[:-100])
    elif how == "cut-in-its-header":
        path.write_bytes(whole[:200])
    elif how == "wrong-magic":
        path.write_bytes(b"NOPE" + whole[4:])
    elif how == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
    return path


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("truncated", "blk.1.ffn_up.weight|truncated|ends"),
        ("cut-in-its-header", "cut-in-its-header.gguf"),
        ("wrong-magic", "GGUF"),
        ("empty", "empty.gguf"),
        ("absent", "absent.gguf"),
        ("unknown-architecture", "'mamba' is not supported"),
        ("missing-tensor", "blk.1.ffn_up.weight"),
    ],
)
def test_a_broken_file_is_refused_with_what_is_wrong_and_where(
    tmp_path: Path, how: str, words: str
) -> None:
    with pytest.raises(ImportRefused, match=words) as refusal:
        import_model(broken(tmp_path, how))
    assert f"{how}.gguf" in str(refusal.value)
    assert not Model.objects.exists()
