"""The folder that peers read is the same model as the file that we read."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from engine.bench.compare.export import export
from engine.checkpoint import open_checkpoint
from engine.config import EngineConfig
from engine.errors import CheckpointError
from engine.text.tokenizer import TextTokenizer
from tests.engine.hf_models import write_hf_model
from tests.engine.local_runner import LocalRunner
from tests.engine.tiny_model import write_tiny_model

CONFIG = EngineConfig(max_batch_size=2, token_budget=64, kv_cache_tokens=512)
PROMPT = [5, 80, 33, 7, 120]


@pytest.mark.parametrize("tied", [True, False])
def test_it_answers_as_the_file_does(tmp_path: Path, tied: bool) -> None:
    file = write_tiny_model(tmp_path / "tiny.gguf", tied=tied)
    folder = export(file, tmp_path / "folder")
    expected = LocalRunner(file, CONFIG).generate([PROMPT], 24)
    assert LocalRunner(folder, CONFIG).generate([PROMPT], 24) == expected


def test_its_tokenizer_cuts_text_as_the_file_says(tmp_path: Path) -> None:
    file = write_tiny_model(tmp_path / "tiny.gguf")
    folder = export(file, tmp_path / "folder")
    ours = TextTokenizer(open_checkpoint(file).tokenizer)
    theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in ("hello world 123", "Grüße, <|im_start|> again"):
        assert theirs.encode(text, add_special_tokens=False).ids == ours.encode_trusted(text)


def test_a_folder_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    file = write_tiny_model(tmp_path / "tiny.gguf")
    folder = export(file, tmp_path / "folder")
    written = (folder / "model.safetensors").stat().st_mtime_ns
    assert export(file, folder) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == written
    assert json.loads((folder / "config.json").read_text())["model_type"] == "llama"


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    write_hf_model(tmp_path / "qwen", "qwen2")
    with pytest.raises(CheckpointError, match="only plain Llama models"):
        export(tmp_path / "qwen", tmp_path / "folder")
