"""A GGUF file, or several, as a checkpoint."""

from functools import cached_property
from pathlib import Path

from engine.checkpoint.checkpoint import Checkpoint, label
from engine.checkpoint.complete import check_tensors
from engine.checkpoint.declared import Declared
from engine.checkpoint.gguf.architectures import read_config
from engine.checkpoint.gguf.metadata import Metadata
from engine.checkpoint.gguf.split import merged_tensors, read_parts
from engine.checkpoint.gguf.tensors import model_tensors
from engine.checkpoint.tokenizer import TokenizerMetadata, read_tokenizer
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _

_TOKENS = "tokenizer.ggml.tokens"
_MAX_NAME, _MAX_LICENSE = 200, 80


class GgufCheckpoint(Checkpoint):
    format = "gguf"
    metadata: Metadata

    @property
    def name(self) -> str:
        return label(self.metadata.get("general.name"), _MAX_NAME) or self.path.stem

    @property
    def license(self) -> str:
        return label(self.metadata.get("general.license"), _MAX_LICENSE)

    @property
    def token_count(self) -> int:
        return self.metadata.length(_TOKENS)

    @cached_property
    def tokenizer(self) -> TokenizerMetadata:
        return read_tokenizer(self.path.name, self.metadata)


def open_gguf(path: Path) -> GgufCheckpoint:
    """Verify the headers against the files' sizes and the architecture; raises CheckpointError."""
    parts = read_parts(path)
    stored = merged_tensors(parts)
    metadata = Metadata(path, parts[0].header)
    tensors = model_tensors(stored)
    config, layout = read_config(Declared(path.name, metadata), stored, tensors)
    _check_vocabulary(path.name, metadata.length(_TOKENS), config.vocab_size)
    check_tensors(path.name, config, tensors)
    checkpoint = GgufCheckpoint(
        path=path,
        size_bytes=sum(part.size for part in parts),
        config=config,
        layout=layout,
        tensors=tensors,
    )
    checkpoint.metadata = metadata
    return checkpoint


def _check_vocabulary(name: str, count: int, rows: int) -> None:
    """The tokenizer may know fewer tokens than the embedding has rows, never more."""
    if not count:
        raise CheckpointError(_("%(file)s: the tokenizer's vocabulary is missing."), file=name)
    if count > rows:
        raise CheckpointError(
            _("%(file)s: the tokenizer has %(count)s tokens but the embedding only %(rows)s rows."),
            file=name,
            count=count,
            rows=rows,
        )
