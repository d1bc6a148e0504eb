"""Which number types a processor can work with, from its instruction sets. Pure, no torch.

Whoever plans knows a node's instruction sets from its inventory; a rank asks its own processor.
"""

from collections.abc import Collection

from engine.config import DTYPES, Dtype, EngineConfig
from engine.errors import ConfigError
from engine.errors import gettext_noop as _

OWN_KERNELS = "own_kernels"
"""Told beside a node's instruction sets: the engine's own kernels are compiled there for it."""
FAST_INT8 = frozenset({"avx512_vnni", "amx_int8", OWN_KERNELS})
"""With any of these int8 is multiplied as it is stored."""
FAST_BF16 = frozenset({"avx512_bf16", "amx_bf16"})
FP8 = frozenset({"amx_fp8"})
INSTRUCTION_SETS = (FAST_INT8 - {OWN_KERNELS}) | FAST_BF16 | FP8

NEEDS: dict[Dtype, frozenset[str]] = {"fp8": FP8}
"""Weights that need one of some instruction sets; the others work everywhere. Keys and values are
stored, not multiplied, so every processor has all of their types."""


def possible_dtypes(instruction_sets: Collection[str]) -> tuple[Dtype, ...]:
    """Weight types of a processor with these instruction sets (names as in /proc/cpuinfo)."""
    return tuple(
        dtype for dtype in DTYPES if dtype not in NEEDS or NEEDS[dtype] & set(instruction_sets)
    )


def check_abilities(config: EngineConfig, instruction_sets: Collection[str]) -> None:
    """Raise ConfigError when a processor with these instruction sets lacks what `config` needs."""
    if config.device == "cuda":
        return  # Its GPU computes them; the rank asks that itself.
    possible = possible_dtypes(instruction_sets)
    if config.dtype not in possible:
        raise ConfigError(
            _("%(dtype)s weights need %(needs)s; this processor can run %(choices)s."),
            dtype=config.dtype,
            needs=", ".join(sorted(NEEDS[config.dtype])),
            choices=", ".join(possible),
        )
