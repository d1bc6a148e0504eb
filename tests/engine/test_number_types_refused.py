"""A number type that a processor cannot multiply is refused at start, by name, with what it has."""

from pathlib import Path

import pytest

from engine.abilities import check_abilities, possible_dtypes
from engine.config import KV_DTYPES, Dtype, EngineConfig, KvDtype
from engine.errors import ConfigError
from engine.kernels import capabilities, choose_linear
from engine.kernels.native import NAMES
from tests.engine.native import kernels, torch_alone
from tests.engine.rank_fleet import RankFailed, RankFleet
from tests.engine.tiny_model import write_tiny_model

REFUSAL = "fp8 weights need amx_fp8; this processor can run fp32, bf16, int8, int4."


def test_the_refusal_names_the_choice_what_it_needs_and_what_there_is() -> None:
    with pytest.raises(ConfigError) as refused:
        check_abilities(EngineConfig(dtype="fp8"), ["avx2", "avx512_vnni"])
    assert str(refused.value) == REFUSAL


def test_a_processor_with_the_instructions_has_the_type() -> None:
    assert possible_dtypes({"amx_fp8"}) == ("fp32", "bf16", "int8", "int4", "fp8")
    check_abilities(EngineConfig(dtype="fp8"), {"amx_fp8"})


@pytest.mark.parametrize("sets", [[], ["avx2"], ["amx_bf16", "amx_int8"]])
@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_every_processor_stores_every_type_of_keys_and_values(
    kv_dtype: KvDtype, sets: list[str]
) -> None:
    check_abilities(EngineConfig(kv_dtype=kv_dtype), sets)


@pytest.mark.parametrize(
    ("dtype", "sets", "kernel"),
    [
        ("fp32", [], "fp32"),
        ("bf16", ["avx512_vnni"], "bf16 upcast"),
        ("bf16", ["amx_bf16"], "bf16"),
        ("int8", [], "int8 exact fp32"),
        ("int8", ["avx512_vnni"], "int8 oneDNN"),
        ("int4", [], "int4 group 64"),
        ("fp8", ["amx_fp8"], "fp8"),
    ],
)
def test_the_kernel_is_the_best_that_the_processor_has(
    monkeypatch: pytest.MonkeyPatch, dtype: Dtype, sets: list[str], kernel: str
) -> None:
    monkeypatch.setattr(capabilities, "instruction_sets", lambda: frozenset(sets))
    with torch_alone():
        name, _linear = choose_linear(EngineConfig(dtype=dtype, int4_group=64))
    assert name == kernel


def test_the_engines_own_kernels_come_first() -> None:
    instructions = NAMES[kernels().instructions]
    assert choose_linear(EngineConfig(dtype="int8"))[0] == f"int8 {instructions}"
    assert choose_linear(EngineConfig(dtype="int4"))[0] == f"int4 {instructions}, group 32"


@pytest.mark.skipif("fp8" in possible_dtypes(capabilities.instruction_sets()), reason="has fp8")
def test_a_rank_refuses_before_it_loads(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    config = EngineConfig(dtype="fp8", kv_cache_tokens=512)
    with pytest.raises(RankFailed, match="fp8 weights need"), RankFleet(model, config, tmp_path):
        pass
