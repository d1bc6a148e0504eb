"""A damaged or unknown model file is refused with what is wrong and where."""

import os
import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path

import gguf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.checkpoint import open_checkpoint
from engine.errors import CheckpointError
from tests.engine.tiny_model import write_tiny_model


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "sound.gguf").read_bytes()


def refusal(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(path)
    message = str(caught.value)
    assert path.name in message
    return message


def test_another_kind_of_file_is_not_a_gguf(tmp_path: Path, sound: bytes) -> None:
    assert "not a GGUF file" in refusal(tmp_path / "a.gguf", b"PK\x03\x04" + sound[4:])
    assert "not a GGUF file" in refusal(tmp_path / "b.gguf", b"")


def test_an_unknown_version_is_named(tmp_path: Path, sound: bytes) -> None:
    content = sound[:4] + struct.pack("<I", 9) + sound[8:]
    assert "version 9 is not supported" in refusal(tmp_path / "v.gguf", content)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nowhere\.gguf: No such file"):
        open_checkpoint(tmp_path / "nowhere.gguf")


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(CheckpointError, match="not a file but a device or a pipe"):
        open_checkpoint(tmp_path / "pipe.gguf")
    with pytest.raises(CheckpointError, match="/dev/zero is not a file"):
        open_checkpoint(Path("/dev/zero"))


def test_a_path_no_file_can_have_is_refused() -> None:
    with pytest.raises(CheckpointError, match="null"):
        open_checkpoint(Path("model\0.gguf"))


def test_a_file_cut_inside_a_tensor_names_the_tensor_and_the_end(
    tmp_path: Path, sound: bytes
) -> None:
    message = refusal(tmp_path / "cut.gguf", sound[:-1000])
    assert "truncated" in message
    assert "tensor '" in message
    assert f"ends at byte {len(sound) - 1000}" in message


@pytest.mark.parametrize("kept", [0.002, 0.01, 0.03])
def test_a_file_cut_inside_its_header_says_so(tmp_path: Path, sound: bytes, kept: float) -> None:
    message = refusal(tmp_path / "cut.gguf", sound[: int(len(sound) * kept)])
    assert "truncated" in message or "can hold" in message or "cannot be real" in message


def test_an_unknown_architecture_is_named_with_the_supported_ones(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", architecture="mamba")
    with pytest.raises(CheckpointError, match="'mamba' is not supported; supported: llama"):
        open_checkpoint(path)


@pytest.mark.parametrize("name", ["blk.1.ffn_up.weight", "token_embd.weight", "output_norm.weight"])
def test_a_missing_tensor_is_named(tmp_path: Path, name: str) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", leave_out=name)
    with pytest.raises(CheckpointError, match=f"tensor '{name}' is missing"):
        open_checkpoint(path)


def test_a_tensor_that_would_be_ignored_is_refused(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", extra="blk.0.attn_sinks.weight")
    with pytest.raises(CheckpointError, match=r"'blk\.0\.attn_sinks\.weight' is not part of a"):
        open_checkpoint(path)


def test_layers_without_most_of_their_tensors_are_refused(tmp_path: Path, sound: bytes) -> None:
    """Every layer has a norm, so only the other tensors tell that something is missing."""
    content = sound
    for name in (b"ffn_up.", b"ffn_gate.", b"ffn_down.", b"attn_output."):
        content = content.replace(name, b"x" + name[1:])
    assert "is missing" in refusal(tmp_path / "m.gguf", content)


def test_what_a_file_says_of_itself_is_shortened_to_what_can_be_shown(
    tmp_path: Path, sound: bytes
) -> None:
    path = tmp_path / "odd.gguf"
    path.write_bytes(sound.replace(b"Tiny random", b"Tiny\0\n\x1b[2m!"))
    assert open_checkpoint(path).name == "Tiny[2m!"


def test_a_wrong_shape_is_named(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", reshape="blk.2.attn_v.weight")
    with pytest.raises(CheckpointError, match=r"attn_v\.weight' has shape \[48, 96\].* \[96, 96\]"):
        open_checkpoint(path)


@pytest.mark.hazard("rope-unknown")
def test_rotary_scaling_of_an_unknown_type_is_refused(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", rope_scaling="spiral")
    with pytest.raises(CheckpointError, match="scaling of type 'spiral'"):
        open_checkpoint(path)


def test_an_unsupported_weight_format_is_named(tmp_path: Path, sound: bytes) -> None:
    name = b"blk.0.attn_q.weight"
    at = sound.index(name) + len(name) + 4 + 16
    content = sound[:at] + struct.pack("<I", 23) + sound[at + 4 :]
    assert "stored as IQ4_XS, which is not supported" in refusal(tmp_path / "k.gguf", content)


def test_a_tensor_named_twice_is_refused(tmp_path: Path, sound: bytes) -> None:
    content = sound.replace(b"blk.1.attn_q.weight", b"blk.0.attn_q.weight")
    assert "'blk.0.attn_q.weight' appears twice" in refusal(tmp_path / "d.gguf", content)


@pytest.mark.parametrize("at", [8, 16])
def test_absurd_counts_fail_without_being_allocated(tmp_path: Path, sound: bytes, at: int) -> None:
    content = sound[:at] + struct.pack("<Q", 2**61) + sound[at + 8 :]
    tracemalloc.start()
    message = refusal(tmp_path / "huge.gguf", content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "cannot be real" in message
    assert peak < 4_000_000


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(position=st.integers(0, 6000), value=st.binary(min_size=1, max_size=8))
def test_any_damage_to_the_header_is_refused_or_harmless(
    tmp_path: Path, sound: bytes, position: int, value: bytes
) -> None:
    path = tmp_path / "fuzzed.gguf"
    path.write_bytes(sound[:position] + value + sound[position + len(value) :])
    with suppress(CheckpointError):
        checkpoint = open_checkpoint(path)
        assert checkpoint.tokenizer.tokens


def test_a_sound_file_is_described(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "m.gguf", tied=False, kind=gguf.GGMLQuantizationType.Q5_1)
    checkpoint = open_checkpoint(path)
    assert checkpoint.name == "Tiny random"
    assert checkpoint.quantization == "Q5_1"
    assert not checkpoint.config.tie_embeddings
    assert checkpoint.token_count == len(checkpoint.tokenizer.tokens)
    assert checkpoint.config.vocab_size == checkpoint.token_count + 5
    assert checkpoint.tokenizer.merges[0] == "h e"
