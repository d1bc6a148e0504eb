"""What this processor can multiply, and which kernel does it best."""

from functools import partial

import msgspec
import torch

from engine.abilities import FAST_BF16, FAST_INT8, INSTRUCTION_SETS, check_abilities
from engine.config import Dtype, EngineConfig
from engine.device import capability, check_device
from engine.kernels.bf16 import Bf16NativeLinear, Bf16UpcastLinear
from engine.kernels.cuda import choose_cuda
from engine.kernels.fp8 import Fp8Linear
from engine.kernels.int4 import Int4Linear
from engine.kernels.int8 import Int8ExactFp32Linear, Int8OneDnnLinear
from engine.kernels.linear import Fp32Linear, LinearFactory
from engine.kernels.native import NAMES, Int4NativeLinear, Int8NativeLinear
from engine.native.library import native


def instruction_sets() -> frozenset[str]:
    """Those of this processor that decide which kernels run, by their names in /proc/cpuinfo."""
    found = torch.cpu.get_capabilities()
    return frozenset(name for name in INSTRUCTION_SETS if found.get(name))


def choose_linear(config: EngineConfig) -> tuple[str, LinearFactory]:
    """The kernel for `config.dtype` on this processor or its GPU, with its name for people.

    Raises ConfigError, naming what there is, when the processor cannot do what `config` asks for.
    """
    check_device(config)
    if config.device == "cuda":
        return choose_cuda(config.dtype, capability())
    sets = instruction_sets()
    check_abilities(config, sets)
    return _choose(config, sets)


def choose_head(config: EngineConfig) -> LinearFactory:
    """The kernel of the output head. int4 leaves it int8: every error there is one of the answer,
    and files keep it finer too."""
    dtype: Dtype = "int8" if config.dtype == "int4" else config.dtype
    return choose_linear(msgspec.structs.replace(config, dtype=dtype))[1]


def _choose(config: EngineConfig, sets: frozenset[str]) -> tuple[str, LinearFactory]:
    library = native()
    match config.dtype:
        case "fp32":
            return "fp32", Fp32Linear
        case "bf16" if sets & FAST_BF16:
            return "bf16", Bf16NativeLinear
        case "bf16":
            return "bf16 upcast", Bf16UpcastLinear
        case "int8" if library is not None:
            return f"int8 {NAMES[library.instructions]}", Int8NativeLinear
        case "int4" if library is not None:
            name = f"int4 {NAMES[library.instructions]}, group {config.int4_group}"
            return name, partial(Int4NativeLinear, group=config.int4_group)
        case "int8" if sets & FAST_INT8:
            return "int8 oneDNN", Int8OneDnnLinear
        case "int8":
            return "int8 exact fp32", Int8ExactFp32Linear
        case "int4":
            return f"int4 group {config.int4_group}", partial(Int4Linear, group=config.int4_group)
        case "fp8":
            return "fp8", Fp8Linear
