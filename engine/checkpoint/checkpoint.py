"""An opened and verified checkpoint, whatever its format."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from engine.checkpoint.stored import Stored
from engine.checkpoint.tensors import Layout
from engine.checkpoint.tokenizer import TokenizerMetadata
from engine.model_config import ModelConfig

Format = Literal["gguf", "safetensors"]


class Checkpoint(ABC):
    """Every header, the tensor index and all shapes have been verified."""

    format: ClassVar[Format]

    def __init__(
        self,
        *,
        path: Path,
        size_bytes: int,
        config: ModelConfig,
        layout: Layout,
        tensors: Mapping[str, Stored],
    ) -> None:
        self.path = path
        """The file, the first of several, or the folder."""
        self.size_bytes = size_bytes
        """Of all files that hold weights."""
        self.config = config
        self.layout = layout
        self.tensors = tensors
        """By the engine's names; exactly those of the model."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The model's own name, or the file's when it has none."""

    @property
    @abstractmethod
    def license(self) -> str:
        """SPDX-like identifier; empty when the model names none."""

    @property
    @abstractmethod
    def token_count(self) -> int:
        """Tokens the tokenizer knows; ids from here to vocab_size are padding."""

    @cached_property
    @abstractmethod
    def tokenizer(self) -> TokenizerMetadata:
        """Reads the vocabulary; raises CheckpointError when it is damaged."""

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


def label(value: object, limit: int) -> str:
    """What a file says of itself, fit to be shown and stored: printable and short."""
    text = value if isinstance(value, str) else ""
    return "".join(filter(str.isprintable, text[:limit])).strip()
