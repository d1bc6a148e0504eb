"""A dense model becomes a mixture of experts that answers as it did."""

import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import gguf
import pytest

from engine.checkpoint import open_checkpoint
from engine.checkpoint.gguf.split import read_parts
from engine.checkpoint.stored import TensorInfo
from engine.config import EngineConfig
from engine.errors import EngineError
from engine.layers.experts import MixtureOfExperts
from engine.tools.upcycle import upcycle
from engine.tools.upcycle.__main__ import main
from tests.engine.local_runner import LocalRunner
from tests.engine.tiny_model import write_tiny_model

PROMPTS = [[5, 80, 33, 120, 7, 61], list(range(20, 60)), [9]]
CONFIG = EngineConfig(kv_cache_tokens=1024, token_budget=32)


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("dense") / "tiny.gguf")


@pytest.fixture(scope="module")
def mixture(dense: Path) -> Path:
    target = dense.with_name("mixture.gguf")
    upcycle(dense, target, experts=4, per_token=2)
    return target


def tensors(path: Path) -> dict[str, TensorInfo]:
    (part,) = read_parts(path)
    return part.header.tensors


def content(info: TensorInfo) -> bytes:
    with info.path.open("rb") as file:
        file.seek(info.offset)
        return file.read(info.nbytes)


def test_a_mixture_answers_as_the_dense_model_does(dense: Path, mixture: Path) -> None:
    runner = LocalRunner(mixture, CONFIG)
    answers = runner.generate(PROMPTS, 32)
    assert answers == LocalRunner(dense, CONFIG).generate(PROMPTS, 32)
    for layer in runner.decoder.layers:
        assert isinstance(layer.mlp, MixtureOfExperts)
        assert int((layer.mlp.tokens > 0).sum()) > 2


def test_it_declares_its_experts_and_says_so_in_its_name(mixture: Path) -> None:
    checkpoint = open_checkpoint(mixture)
    experts = checkpoint.config.experts
    assert experts is not None
    assert (experts.count, experts.per_token, experts.renormalize) == (4, 2, True)
    assert checkpoint.name == "Tiny random x4"


def test_every_expert_holds_the_dense_blocks_byte_for_byte(dense: Path, mixture: Path) -> None:
    old, new = tensors(dense), tensors(mixture)
    for name, info in old.items():
        stacked = f"{name.removesuffix('.weight')}_exps.weight"
        if stacked in new:
            assert content(new[stacked]) == 4 * content(info)
        else:
            assert content(new[name]) == content(info)
        assert new.get(stacked, info).format == info.format


def test_tokenizer_and_template_come_along(dense: Path, mixture: Path) -> None:
    assert open_checkpoint(mixture).tokenizer == open_checkpoint(dense).tokenizer


def test_other_readers_understand_the_file(mixture: Path) -> None:
    reader = gguf.GGUFReader(mixture)
    shapes = {tensor.name: tensor.shape.tolist() for tensor in reader.tensors}
    assert shapes["blk.0.ffn_gate_exps.weight"] == [96, 192, 4]
    assert shapes["blk.2.ffn_gate_inp.weight"] == [96, 4]
    assert reader.fields["llama.expert_used_count"].contents() == 2


def test_the_same_seed_makes_the_same_file(dense: Path, mixture: Path, tmp_path: Path) -> None:
    upcycle(dense, tmp_path / "same.gguf", experts=4, per_token=2)
    upcycle(dense, tmp_path / "other.gguf", experts=4, per_token=2, seed=1)
    assert (tmp_path / "same.gguf").read_bytes() == mixture.read_bytes()
    assert (tmp_path / "other.gguf").read_bytes() != mixture.read_bytes()


@pytest.mark.parametrize(
    ("experts", "per_token", "words"),
    [
        (1, 1, "A mixture has 2 to 128 experts, not 1."),
        (200, 2, "A mixture has 2 to 128 experts, not 200."),
        (4, 5, "A token can pass through 1 to 4 experts, not 5."),
        (4, 0, "A token can pass through 1 to 4 experts, not 0."),
    ],
)
def test_impossible_numbers_are_refused(
    dense: Path, tmp_path: Path, experts: int, per_token: int, words: str
) -> None:
    with pytest.raises(EngineError) as caught:
        upcycle(dense, tmp_path / "new.gguf", experts, per_token)
    assert str(caught.value) == words
    assert not list(tmp_path.iterdir())


def test_a_mixture_is_not_mixed_again(mixture: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="is a mixture of experts already"):
        upcycle(mixture, tmp_path / "new.gguf", 4)


def test_nothing_is_overwritten(dense: Path, mixture: Path) -> None:
    before = mixture.read_bytes()
    with pytest.raises(EngineError, match="already exists"):
        upcycle(dense, mixture, 4)
    assert mixture.read_bytes() == before


def test_a_folder_that_is_not_there_is_refused(dense: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="There is no folder"):
        upcycle(dense, tmp_path / "missing" / "new.gguf", 4)


def test_a_full_disk_is_noticed_before_anything_is_written(
    dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("engine.tools.upcycle.files.shutil.disk_usage", lambda path: usage)
    with pytest.raises(EngineError, match="needs 1 MB, but only 0 MB are free"):
        upcycle(dense, tmp_path / "new.gguf", 4)
    assert not list(tmp_path.iterdir())


def test_a_truncated_model_leaves_nothing_behind(dense: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.gguf"
    short.write_bytes(dense.read_bytes()[:-100])
    with pytest.raises(EngineError, match="truncated"):
        upcycle(short, tmp_path / "new.gguf", 4)
    assert list(tmp_path.iterdir()) == [short]


def test_the_command_says_what_it_made_or_why_not(dense: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "engine.tools.upcycle", str(dense), str(tmp_path / "new.gguf")]
    made = subprocess.run([*command, "--experts", "2"], capture_output=True, text=True, timeout=60)
    assert (made.returncode, made.stdout) == (0, f"{tmp_path / 'new.gguf'}\n")
    again = subprocess.run([*command, "--experts", "2"], capture_output=True, text=True, timeout=60)
    assert again.returncode == 1
    assert again.stderr.endswith("already exists; choose another name or remove it.\n")


def test_two_at_once_make_one_file(
    dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second comes while the first writes, and waits for it."""
    module = sys.modules["engine.tools.upcycle.upcycle"]
    write: Any = module.write_gguf
    target, entered = tmp_path / "mixture.gguf", Event()
    seconds: list[Future[None]] = []

    def interrupted(*arguments: Any) -> None:
        if seconds:
            entered.set()
        else:
            seconds.append(pool.submit(upcycle, dense, target, 4))
            entered.wait(0.5)
        write(*arguments)

    monkeypatch.setattr(module, "write_gguf", interrupted)
    with ThreadPoolExecutor(1) as pool:
        upcycle(dense, target, 4)
        with pytest.raises(EngineError, match="already exists"):
            seconds[0].result()
    assert list(tmp_path.iterdir()) == [target]
    open_checkpoint(target)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(SystemExit):
        main(["bundled", "new.gguf", "--experts", "4", "--seed", "-1"])
