"""A folder whose index, shards and model do not fit each other is refused, by file and tensor."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from engine.checkpoint import open_checkpoint, revision
from engine.errors import CheckpointError
from tests.engine.hf_models import write_hf_model

INDEX = "model.safetensors.index.json"
QUERY = "model.layers.1.self_attn.q_proj.weight"
Header = dict[str, Any]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "model"
    write_hf_model(folder, "llama-linear")
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(sound, tmp_path / "model"))


@pytest.fixture
def single(sound: Path, tmp_path: Path) -> Path:
    """The same weights in one file, without an index."""
    folder = Path(shutil.copytree(sound, tmp_path / "single"))
    tensors = {
        name: array
        for file in folder.glob("*.safetensors")
        for name, array in load_file(file).items()
    }
    for file in [*folder.glob("*.safetensors"), folder / INDEX]:
        file.unlink()
    save_file(tensors, folder / "model.safetensors")
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(folder)
    return str(caught.value)


def weight_map(folder: Path) -> dict[str, str]:
    places: dict[str, str] = json.loads((folder / INDEX).read_text())["weight_map"]
    return places


def change_index(folder: Path, change: Callable[[dict[str, str]], object]) -> None:
    places = weight_map(folder)
    change(places)
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))


def change_tensors(folder: Path, name: str, change: Callable[[dict[str, Any]], object]) -> Path:
    """Rewrite the shard that holds tensor `name`."""
    shard = folder / weight_map(folder)[name]
    tensors: dict[str, Any] = dict(load_file(shard))
    change(tensors)
    save_file(tensors, shard)
    return shard


def change_header(file: Path, change: Callable[[Header], object]) -> None:
    raw = file.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + length :])


def test_a_sound_folder_is_described(sound: Path, single: Path) -> None:
    (single / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# Tiny\n")
    many, one = open_checkpoint(sound), open_checkpoint(single)
    assert many.format == one.format == "safetensors"
    assert many.config == one.config
    assert many.parameters == one.parameters
    assert many.quantization == "F32"
    assert (many.name, one.name) == ("model", "single")
    assert (many.license, one.license) == ("", "apache-2.0")
    assert many.size_bytes == sum(file.stat().st_size for file in sound.glob("*.safetensors"))
    assert len({info.path for info in many.tensors.values()}) > 2


@pytest.mark.hazard("shard-index")
def test_a_missing_shard_is_named(folder: Path) -> None:
    shard = weight_map(folder)[QUERY]
    (folder / shard).unlink()
    assert f"{INDEX}: shard {shard} is missing" in refusal(folder)


@pytest.mark.hazard("shard-index")
def test_a_tensor_that_the_index_promises_is_missed(folder: Path) -> None:
    shard = change_tensors(folder, QUERY, lambda tensors: tensors.pop(QUERY))
    assert f"tensor '{QUERY}' should be in {shard.name}, but is not" in refusal(folder)


@pytest.mark.hazard("shard-index")
def test_a_tensor_that_the_index_does_not_know_is_refused(folder: Path) -> None:
    shard = weight_map(folder)[QUERY]
    change_index(folder, lambda places: places.pop(QUERY))
    assert f"tensor '{QUERY}' is in {shard}, but not in the index" in refusal(folder)


@pytest.mark.hazard("shard-index")
def test_a_copy_of_a_tensor_in_another_shard_cannot_hide_it(folder: Path) -> None:
    other = weight_map(folder)["model.norm.weight"]
    copy = {QUERY: np.zeros((64, 64), np.float32)}
    change_tensors(folder, "model.norm.weight", lambda tensors: tensors.update(copy))
    message = refusal(folder)
    assert f"tensor '{QUERY}' is in {other}, but the index says" in message


@pytest.mark.hazard("shard-index")
def test_a_tensor_of_no_use_is_refused(folder: Path) -> None:
    extra = "model.layers.1.self_attn.sinks"
    shard = change_tensors(
        folder, QUERY, lambda tensors: tensors.update({extra: np.zeros(4, np.float32)})
    )
    change_index(folder, lambda places: places.update({extra: shard.name}))
    assert f"{shard.name}: tensor '{extra}' is not part of a llama model" in refusal(folder)


@pytest.mark.hazard("shard-index")
@pytest.mark.parametrize(
    "name",
    [QUERY, "model.embed_tokens.weight", "lm_head.weight", "model.layers.2.input_layernorm.weight"],
)
def test_a_tensor_that_nothing_mentions_is_missed_all_the_same(folder: Path, name: str) -> None:
    change_tensors(folder, name, lambda tensors: tensors.pop(name))
    change_index(folder, lambda places: places.pop(name))
    assert f"model: tensor '{name}' is missing" in refusal(folder)


def test_a_wrong_shape_is_named(folder: Path) -> None:
    half = {QUERY: np.zeros((32, 64), np.float32)}
    shard = change_tensors(folder, QUERY, lambda tensors: tensors.update(half))
    message = refusal(folder)
    assert f"{shard.name}: tensor '{QUERY}' has shape [32, 64]" in message
    assert "[64, 64]" in message


def test_a_weight_file_beside_the_index_is_refused(folder: Path) -> None:
    save_file({"x": np.zeros(1, np.float32)}, folder / "model.safetensors")
    assert "the folder also holds model.safetensors, which it does not list" in refusal(folder)


@pytest.mark.parametrize("place", ["../outside.safetensors", "/etc/passwd", "", 7, "a\0b"])
def test_the_index_cannot_lead_out_of_the_folder(folder: Path, place: Any) -> None:
    change_index(folder, lambda places: places.update({QUERY: place}))
    assert f"tensor '{QUERY}' is said to be in" in refusal(folder)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda entry: entry.update(dtype="F8_E4M3"), "stored as F8_E4M3, which is not supported"),
        (lambda entry: entry.update(dtype=["F32"]), "which is not supported; use a checkpoint in"),
        (lambda entry: entry.update(shape=[64, 65]), "its shape needs 16640"),
        (lambda entry: entry.update(shape=[]), "should have 1 to 4 dimensions"),
        (lambda entry: entry.update(shape=[0, 64]), "impossible dimension 0"),
        (lambda entry: entry.update(shape=[True, 64]), "impossible dimension True"),
        (lambda entry: entry.update(shape=[2**60, 64]), "impossible dimension"),
        (lambda entry: entry.update(data_offsets=[-4, 4]), "impossible byte range"),
        (lambda entry: entry.update(data_offsets=[8, 4]), "impossible byte range"),
        (lambda entry: entry.update(data_offsets=[0]), "impossible byte range"),
        (lambda entry: entry.update(data_offsets=[2**40, 2**40 + 16384]), "is truncated"),
        (lambda entry: entry.clear(), "which is not supported"),
    ],
)
def test_a_damaged_entry_names_its_tensor(
    single: Path, change: Callable[[Header], object], wanted: str
) -> None:
    change_header(single / "model.safetensors", lambda header: change(header[QUERY]))
    message = refusal(single)
    assert message.startswith("model.safetensors")
    assert f"'{QUERY}'" in message
    assert wanted in message


def test_tensors_that_overlap_are_refused(single: Path) -> None:
    def overlap(header: Header) -> None:
        other = header["model.layers.0.self_attn.q_proj.weight"]
        header[QUERY]["data_offsets"] = other["data_offsets"]

    change_header(single / "model.safetensors", overlap)
    assert "overlaps the one before it" in refusal(single)


def test_bytes_that_no_tensor_claims_are_refused(single: Path) -> None:
    file = single / "model.safetensors"
    sound = file.read_bytes()
    file.write_bytes(sound + b"\0" * 12)
    assert "the last 12 bytes belong to no tensor" in refusal(single)
    file.write_bytes(sound)
    change_header(file, lambda header: header.pop(QUERY))
    assert "belong to no tensor" in refusal(single)


def test_a_file_that_was_cut_is_refused(single: Path) -> None:
    file = single / "model.safetensors"
    content = file.read_bytes()
    for kept, wanted in [(len(content) - 4, "truncated"), (500, "truncated"), (4, "truncated")]:
        file.write_bytes(content[:kept])
        assert wanted in refusal(single)


def test_a_header_that_claims_to_be_huge_is_refused_unread(single: Path) -> None:
    file = single / "model.safetensors"
    with file.open("r+b") as handle:
        handle.truncate(200_000_000)
        handle.write(struct.pack("<Q", 150_000_000))
    assert "the limit is 100000000" in refusal(single)


def test_a_tensor_named_twice_is_refused(single: Path) -> None:
    file = single / "model.safetensors"
    raw = file.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = raw[8 : 8 + length].rstrip()
    entry = json.dumps({QUERY: json.loads(header)[QUERY]}).encode()
    doubled = header[:-1] + b"," + entry[1:]
    file.write_bytes(struct.pack("<Q", len(doubled)) + doubled + raw[8 + length :])
    assert f"'{QUERY}' appears twice" in refusal(single)


def test_what_is_no_json_object_is_refused(single: Path) -> None:
    for content in (b"", b"[]", b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000, b'{"a": 1'):
        (single / "config.json").write_bytes(content)
        assert refusal(single).startswith("config.json")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "consolidated.00.pth"])
def test_a_pickle_is_never_opened(single: Path, name: str) -> None:
    (single / "model.safetensors").rename(single / name)
    for path in (single, single / name):
        message = refusal(path)
        assert f"{name} is a pickle, which can run any code" in message
        assert "convert the model to safetensors" in message


def test_a_folder_without_a_model_says_what_it_lacks(single: Path, tmp_path: Path) -> None:
    (single / "model.safetensors").unlink()
    assert "holds neither model.safetensors nor" in refusal(single)
    (tmp_path / "empty").mkdir()
    assert "config.json: No such file" in refusal(tmp_path / "empty")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_one_file_of_a_folder_leads_to_the_folder(single: Path, name: str) -> None:
    assert f"{name} is one file of a model; give the folder" in refusal(single / name)


@pytest.mark.hazard("tied-embeddings")
def test_a_redundant_output_head_is_ignored_where_embeddings_are_tied(single: Path) -> None:
    config = json.loads((single / "config.json").read_text())
    (single / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": True}))
    checkpoint = open_checkpoint(single)
    assert checkpoint.config.tie_embeddings
    assert "output.weight" not in checkpoint.tensors


def test_a_revision_changes_with_every_part(folder: Path) -> None:
    known = {revision(folder)}
    for name in (weight_map(folder)[QUERY], "config.json", "tokenizer.json", "chat_template.jinja"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-1] + b" ")
        assert revision(folder) not in known
        known.add(revision(folder))
        (folder / name).write_bytes(content)
        assert revision(folder) in known
    (folder / "notes.txt").write_text("no part of the model")
    assert revision(folder) in known
