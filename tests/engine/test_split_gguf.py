"""A GGUF model in several files is whole or refused, and read from all of them."""

import shutil
import struct
from pathlib import Path

import pytest

from engine.checkpoint import open_checkpoint, revision
from engine.errors import CheckpointError
from tests.engine.gguf_models import write_gguf
from tests.engine.hf_models import write_hf_model


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("split")
    model = write_hf_model(folder / "folder", "llama-llama3")
    return write_gguf(model, folder / "tiny.gguf", parts=3)


@pytest.fixture
def first(sound: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    for part in sound.parent.glob("*.gguf"):
        shutil.copy(part, tmp_path)
    return tmp_path / sound.name


def part(first: Path, number: int) -> Path:
    return first.with_name(f"tiny-{number:05}-of-00003.gguf")


def refusal(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(path)
    return str(caught.value)


def set_value(path: Path, key: str, form: str, value: int) -> None:
    """Overwrite a metadata number in place."""
    raw = bytearray(path.read_bytes())
    at = raw.index(key.encode()) + len(key) + 4
    struct.pack_into(form, raw, at, value)
    path.write_bytes(raw)


def test_all_parts_are_one_checkpoint(sound: Path) -> None:
    checkpoint = open_checkpoint(sound)
    parts = sorted(sound.parent.glob("*.gguf"))
    assert checkpoint.format == "gguf"
    assert checkpoint.size_bytes == sum(file.stat().st_size for file in parts)
    assert {info.path for info in checkpoint.tensors.values()} == set(parts)
    assert checkpoint.tokenizer.tokens


@pytest.mark.hazard("shard-index")
def test_a_missing_part_is_named(first: Path) -> None:
    part(first, 2).unlink()
    assert "part tiny-00002-of-00003.gguf of this model is missing" in refusal(first)


@pytest.mark.hazard("shard-index")
def test_a_path_with_nothing_there_is_not_taken_for_an_incomplete_model(first: Path) -> None:
    for number in (1, 2, 3):
        part(first, number).unlink()
    assert f"Cannot open {first}" in refusal(first)


@pytest.mark.hazard("shard-index")
def test_parts_that_lack_a_tensor_are_refused(first: Path) -> None:
    set_value(first, "split.tensors.count", "<i", 99)
    assert "should hold 99 tensors together, but hold" in refusal(first)


def test_a_later_part_leads_to_the_first(first: Path) -> None:
    assert f"open the first part, {first.name}" in refusal(part(first, 3))


def test_a_part_under_the_name_of_another_is_refused(first: Path) -> None:
    shutil.copy(part(first, 3), part(first, 2))
    message = refusal(first)
    assert "tiny-00002-of-00003.gguf: it says that it is part 3" in message
    assert "its name stands for part 2" in message


def test_a_part_of_another_split_is_refused(first: Path) -> None:
    set_value(part(first, 2), "split.count", "<H", 4)
    assert "it says that its model is in 4 parts" in refusal(first)


def test_a_renamed_first_part_says_how_the_parts_have_to_be_called(first: Path) -> None:
    message = refusal(first.rename(first.with_name("renamed.gguf")))
    assert "its model is in 3 parts" in message
    assert "original names" in message


def test_a_tensor_in_two_parts_is_refused(first: Path) -> None:
    names = [name for name in (b"blk.0.attn_q.weight",) if name in first.read_bytes()]
    second = part(first, 2).read_bytes()
    at = second.index(b".attn_q.weight") - 5
    assert names
    part(first, 2).write_bytes(second[:at] + names[0] + second[at + len(names[0]) :])
    assert f"tensor '{names[0].decode()}' is in {first.name} too" in refusal(first)


def test_a_revision_changes_with_every_part(first: Path) -> None:
    known = {revision(first)}
    for number in (1, 2, 3):
        with part(first, number).open("r+b") as file:
            file.seek(-1, 2)
            file.write(b"\x7f")
        known.add(revision(first))
    assert len(known) == 4
