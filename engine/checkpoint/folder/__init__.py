"""Hugging Face folders: config.json, safetensors and tokenizer files, without torch."""

from pathlib import Path

from engine.checkpoint.checkpoint import Checkpoint
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _


def open_folder(path: Path) -> Checkpoint:
    raise CheckpointError(_("%(path)s is a folder."), path=str(path))


def folder_files(path: Path) -> list[Path]:
    return sorted(path.iterdir())


def refuse_file(path: Path) -> None:
    return None
