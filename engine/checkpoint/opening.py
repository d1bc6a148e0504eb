"""Which reader a path needs, and the fingerprint of what it holds."""

import hashlib
import os
from pathlib import Path

from engine.checkpoint.checkpoint import Checkpoint
from engine.checkpoint.files import is_folder, opened
from engine.checkpoint.folder import folder_files, open_folder, refuse_file
from engine.checkpoint.gguf import gguf_parts, open_gguf


def open_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """A GGUF file, the first part of a split one, or a Hugging Face folder.

    Raises CheckpointError with one sentence that says what is wrong and where.
    """
    path = Path(path)
    if is_folder(path):
        return open_folder(path)
    refuse_file(path)
    return open_gguf(path)


def revision(path: str | os.PathLike[str]) -> str:
    """SHA-256 in hex of the file's content; of the names and digests of several files."""
    path = Path(path)
    files = folder_files(path) if is_folder(path) else gguf_parts(path)
    if len(files) == 1 and files[0] == path:
        return _digest(path)
    total = hashlib.sha256()
    for file in files:
        total.update(f"{_digest(file)}  {file.name}\n".encode())
    return total.hexdigest()


def _digest(path: Path) -> str:
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
