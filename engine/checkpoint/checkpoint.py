"""An opened and verified checkpoint."""

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from io import FileIO
from pathlib import Path

from engine.checkpoint.cursor import Cursor
from engine.checkpoint.header import ArrayPlace, Header, TensorInfo, Value, read_array, read_header
from engine.checkpoint.schema import check_tensors, read_config
from engine.checkpoint.tensors import Layout
from engine.checkpoint.tokenizer import TokenizerMetadata, read_tokenizer
from engine.errors import CheckpointError, system_words
from engine.errors import gettext_noop as _
from engine.model_config import ModelConfig

_TOKENS = "tokenizer.ggml.tokens"
_MAX_NAME, _MAX_LICENSE = 200, 80


class Metadata(Mapping[str, Value]):
    """Metadata by key. Arrays are read from the file when first asked for."""

    def __init__(self, path: Path, header: Header) -> None:
        self._path = path
        self._values = header.values
        self._arrays: dict[str, Value] = {}

    def __getitem__(self, key: str) -> Value:
        value = self._values[key]
        if not isinstance(value, ArrayPlace):
            return value
        if key not in self._arrays:
            with _opened(self._path) as cursor_file:
                cursor = Cursor(cursor_file.fileno(), self._path, value.offset)
                self._arrays[key] = read_array(cursor, key, value)
        return self._arrays[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def count(self, key: str) -> int:
        """Length of an array, without reading it; 0 when there is none."""
        value = self._values.get(key)
        return value.count if isinstance(value, ArrayPlace) else 0


class Checkpoint:
    """A GGUF file whose header, tensor index and shapes have been verified."""

    def __init__(self, path: Path, size_bytes: int, header: Header, config: ModelConfig) -> None:
        self.path = path
        self.size_bytes = size_bytes
        self.config = config
        self.layout = Layout(rotary="interleaved")
        """Llama's query and key rows; set by architecture."""
        self.tensors: Mapping[str, TensorInfo] = header.tensors
        self.metadata = Metadata(path, header)

    @property
    def name(self) -> str:
        """The model's own name, or the file's when it has none."""
        return _label(self.metadata.get("general.name"), _MAX_NAME) or self.path.stem

    @property
    def license(self) -> str:
        """SPDX-like identifier; empty when the file names none."""
        return _label(self.metadata.get("general.license"), _MAX_LICENSE)

    @property
    def token_count(self) -> int:
        """Tokens the tokenizer knows; ids from here to vocab_size are padding."""
        return self.metadata.count(_TOKENS)

    @cached_property
    def parameters(self) -> int:
        return sum(info.elements for info in self.tensors.values())

    @cached_property
    def quantization(self) -> str:
        """The format that holds most of the weights, e.g. `Q4_1`."""
        sizes: Counter[str] = Counter()
        for info in self.tensors.values():
            sizes[info.format.name] += info.elements
        return sizes.most_common(1)[0][0]

    @cached_property
    def tokenizer(self) -> TokenizerMetadata:
        """Reads the vocabulary; raises CheckpointError when it is damaged."""
        return read_tokenizer(self.path.name, self.metadata)


def open_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Verify a GGUF file's header against its size and its architecture.

    Raises CheckpointError with one sentence that says what is wrong and where.
    """
    path = Path(path)
    with _opened(path) as file:
        cursor = Cursor(file.fileno(), path)
        header = read_header(cursor)
        config = read_config(path.name, header)
        check_tensors(path.name, config, header.tensors)
        return Checkpoint(path, cursor.size, header, config)


def revision(path: str | os.PathLike[str]) -> str:
    """SHA-256 of the file's content, in hex."""
    with _opened(Path(path)) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _label(value: object, limit: int) -> str:
    """What a file says of itself, fit to be shown and stored: printable and short."""
    text = value if isinstance(value, str) else ""
    return "".join(filter(str.isprintable, text[:limit])).strip()


def _opened(path: Path) -> FileIO:
    try:
        file = FileIO(path, opener=_without_waiting)
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have
        reason = system_words(error) if isinstance(error, OSError) else str(error)
        raise CheckpointError(
            _("Cannot open %(path)s: %(reason)s."), path=str(path), reason=reason
        ) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise CheckpointError(_("%(path)s is not a file but a device or a pipe."), path=str(path))
    return file


def _without_waiting(path: str, flags: int) -> int:
    """Opening a pipe would wait for its writer, for ever if need be."""
    return os.open(path, flags | os.O_NONBLOCK)
