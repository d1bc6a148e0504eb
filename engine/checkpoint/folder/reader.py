"""A Hugging Face folder as a checkpoint."""

import re
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from engine.checkpoint.checkpoint import Checkpoint, label
from engine.checkpoint.files import is_there, opened, read_object, size_of
from engine.checkpoint.folder import tokenizer
from engine.checkpoint.folder.config import read_config
from engine.checkpoint.folder.shards import (
    INDEX,
    PICKLES,
    pickle_refusal,
    stored_tensors,
    weight_files,
)
from engine.checkpoint.folder.tensors import model_tensors
from engine.checkpoint.tokenizer import TokenizerMetadata
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _

CONFIG, CARD = "config.json", "README.md"
MAX_CONFIG = 10_000_000
_CARD_START = 64 * 1024
_MAX_NAME, _MAX_LICENSE = 200, 80
_LICENSE = re.compile(r"\A---\n(?:(?!---).*\n)*?license: *['\"]?(?P<license>[^'\"\n]+)")


class FolderCheckpoint(Checkpoint):
    format = "safetensors"
    raw: dict[str, Any]
    """config.json as it is."""

    @property
    def name(self) -> str:
        return label(self.path.resolve().name, _MAX_NAME)

    @cached_property
    def license(self) -> str:
        """From the front matter of the model card."""
        with suppress(CheckpointError), opened(self.path / CARD) as file:
            match = _LICENSE.match(file.read(_CARD_START).decode("utf-8", "replace"))
            return label(match["license"], _MAX_LICENSE) if match else ""
        return ""

    @property
    def token_count(self) -> int:
        return len(self.tokenizer.tokens)

    @cached_property
    def tokenizer(self) -> TokenizerMetadata:
        return tokenizer.read_tokenizer(self.path, self.raw, self.config.vocab_size)


def open_folder(path: Path) -> FolderCheckpoint:
    """Verify configuration, index, headers and shapes; raises CheckpointError."""
    raw = read_object(path / CONFIG, MAX_CONFIG)
    found = read_config(path.name, raw)
    stored = stored_tensors(path)
    checkpoint = FolderCheckpoint(
        path=path,
        size_bytes=sum(size_of(file) for file in weight_files(path)),
        config=found.model,
        layout=found.layout,
        tensors=model_tensors(path, found.model, stored, found.extra_layers),
    )
    checkpoint.raw = raw
    return checkpoint


def folder_files(path: Path) -> list[Path]:
    """Everything that counts for what a model answers, in a stable order."""
    small = (
        CONFIG,
        INDEX,
        tokenizer.FILE,
        tokenizer.SETTINGS,
        tokenizer.SPECIAL,
        tokenizer.GENERATION,
        tokenizer.TEMPLATE,
    )
    return [path / name for name in small if is_there(path / name)] + weight_files(path)


def refuse_file(path: Path) -> None:
    """Raise CheckpointError, with the remedy, for a single file of a folder, or a pickle."""
    if path.suffix in PICKLES:
        raise pickle_refusal(path)
    if path.suffix == ".safetensors" or path.name in (CONFIG, INDEX):
        raise CheckpointError(
            _("%(file)s is one file of a model; give the folder that holds it."), file=path.name
        )
