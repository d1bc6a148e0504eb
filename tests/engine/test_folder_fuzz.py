"""Whatever a folder's files hold, opening it succeeds or says what is wrong; nothing else."""

import json
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.checkpoint import open_checkpoint
from engine.errors import CheckpointError
from tests.engine.hf_models import write_hf_model

QUICK = settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
INDEX = "model.safetensors.index.json"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = ("llama-linear", "gemma3", "mixtral", "deepseek_v3")


class Folder:
    """A sound model, whose files may be replaced."""

    def __init__(self, place: Path, name: str) -> None:
        self.place = place / name
        write_hf_model(self.place, name)
        self.config: dict[str, Any] = json.loads((self.place / "config.json").read_text())
        self.index: dict[str, Any] = json.loads((self.place / INDEX).read_text())
        self.tokenizer: dict[str, Any] = json.loads((self.place / "tokenizer.json").read_text())
        self.shard = sorted(self.place.glob("*.safetensors"))[0]
        self.sound = self.shard.read_bytes()

    def put(self, name: str, content: bytes) -> None:
        (self.place / name).write_bytes(content)

    def open(self) -> None:
        with suppress(CheckpointError):
            checkpoint = open_checkpoint(self.place)
            assert checkpoint.tensors
            assert checkpoint.tokenizer.tokens


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Folder]:
    place = tmp_path_factory.mktemp("fuzz")
    return {name: Folder(place, name) for name in NAMES}


def spoiled(draw: st.DrawFn, value: dict[str, Any]) -> bytes:
    """`value` with one key, at most two levels down, replaced, removed or added."""
    target: Any = json.loads(json.dumps(value))
    root = target
    for _level in range(draw(st.integers(0, 1))):
        inner = [key for key, held in target.items() if isinstance(held, dict) and held]
        if inner:
            target = target[draw(st.sampled_from(inner))]
    key = draw(st.sampled_from(sorted(target)) | st.text(max_size=8))
    if draw(st.booleans()):
        target[key] = draw(JSON)
    else:
        target.pop(key, None)
    return json.dumps(root).encode()


@QUICK
@given(data=st.data(), name=st.sampled_from(NAMES))
def test_any_config_is_read_or_refused(
    folders: dict[str, Folder], data: st.DataObject, name: str
) -> None:
    folder = folders[name]
    folder.put("config.json", data.draw(st.composite(spoiled)(folder.config)))
    folder.open()
    folder.put("config.json", json.dumps(folder.config).encode())


@QUICK
@given(data=st.data(), name=st.sampled_from(NAMES))
def test_any_index_is_read_or_refused(
    folders: dict[str, Folder], data: st.DataObject, name: str
) -> None:
    folder = folders[name]
    folder.put(INDEX, data.draw(st.composite(spoiled)(folder.index)))
    folder.open()
    folder.put(INDEX, json.dumps(folder.index).encode())


@QUICK
@given(data=st.data())
def test_any_tokenizer_is_read_or_refused(folders: dict[str, Folder], data: st.DataObject) -> None:
    folder = folders["llama-linear"]
    folder.put("tokenizer.json", data.draw(st.composite(spoiled)(folder.tokenizer)))
    folder.put("tokenizer_config.json", data.draw(st.composite(spoiled)({"eos_token": "x"})))
    folder.put("generation_config.json", data.draw(st.composite(spoiled)({"eos_token_id": [2]})))
    folder.open()


@QUICK
@given(data=st.data(), name=st.sampled_from(NAMES))
def test_any_header_of_a_shard_is_read_or_refused(
    folders: dict[str, Folder], data: st.DataObject, name: str
) -> None:
    folder = folders[name]
    length = int.from_bytes(folder.sound[:8], "little")
    header = data.draw(st.composite(spoiled)(json.loads(folder.sound[8 : 8 + length])))
    content = struct.pack("<Q", len(header)) + header + folder.sound[8 + length :]
    folder.put(folder.shard.name, content)
    folder.open()
    folder.put(folder.shard.name, folder.sound)


@QUICK
@given(position=st.integers(0, 900), value=st.binary(min_size=1, max_size=8))
def test_any_damage_to_a_shard_is_read_or_refused(
    folders: dict[str, Folder], position: int, value: bytes
) -> None:
    folder = folders["mixtral"]
    sound = folder.sound
    folder.put(folder.shard.name, sound[:position] + value + sound[position + len(value) :])
    folder.open()
    folder.put(folder.shard.name, sound)
