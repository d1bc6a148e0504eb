"""AMD devices: numbers are readings, the text "N/A" and all bits set are none."""

from pathlib import Path

import pytest

from monitoring.probes.amd import AmdReader
from monitoring.probes.devices import Numbering, Unreadable
from monitoring.samples import Sample
from tests.peers import fake_amdsmi

NOT_TOLD = "This accelerator's driver does not tell it."
MIB = 1 << 20


@pytest.fixture(scope="module")
def samples() -> dict[str, Sample]:
    read = AmdReader(Numbering(), lambda: fake_amdsmi).read()
    return {f"{s.subject} {s.metric} {s.label}".strip(): s for s in read}


def told(samples: dict[str, Sample], subject: str) -> dict[str, float | str | None]:
    return {
        key.removeprefix(f"{subject} "): sample.reason if sample.value is None else sample.value
        for key, sample in samples.items()
        if sample.subject == subject
    }


def test_everything_that_is_told(samples: dict[str, Sample]) -> None:
    assert told(samples, "gpu:0") == {
        "gpu_utilization_ratio": 0.63,
        "gpu_memory_used_bytes": 1024 * MIB,
        "gpu_memory_total_bytes": 196288 * MIB,
        "gpu_memory_headroom_bytes": 195264 * MIB,
        "gpu_temperature_celsius": 58.0,
        "power_watts": 412.0,
        "energy_joules_total": 61.0,
        "gpu_power_limit_watts": 750.0,
        "gpu_clock_hertz sm": 2.1e9,
        "gpu_clock_hertz memory": 1.3e9,
        "gpu_fan_ratio": NOT_TOLD,
        "fan_speed_rpm": 3100.0,
        "gpu_ecc_errors_total corrected": 2.0,
        "gpu_ecc_errors_total uncorrected": 0.0,
    }
    assert samples["gpu:0 power_watts"].source == "amdsmi, socket, instant"


def test_nothing_that_is_not_told_is_a_zero(samples: dict[str, Sample]) -> None:
    bare = told(samples, "gpu:1")
    assert set(bare.values()) == {NOT_TOLD}
    assert "fan_speed_rpm" not in bare


def test_what_a_device_is() -> None:
    reader = AmdReader(Numbering(), lambda: fake_amdsmi)
    reader.read()
    first, second = reader.devices()
    assert (first.name, first.memory_bytes, first.driver) == (
        "AMD Instinct MI300X",
        196288 * MIB,
        "6.12.12",
    )
    assert (second.name, second.memory_bytes) == ("AMD", None)


def test_a_call_that_this_release_does_not_have_costs_one_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(fake_amdsmi, "amdsmi_get_energy_count")
    monkeypatch.setattr(fake_amdsmi, "amdsmi_get_gpu_activity", lambda handle: [][0])
    samples = {s.metric: s for s in AmdReader(Numbering(), lambda: fake_amdsmi).read()[:14]}
    assert samples["gpu_utilization_ratio"].reason == NOT_TOLD
    assert samples["power_watts"].value == 412.0
    energy = samples["energy_joules_total"]
    assert (energy.kind, energy.source) == ("estimated", "amdsmi, power over time")


def test_a_package_without_rocms_own_library_is_no_failure_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is when the package is installed and ROCm is not."""
    loads = tmp_path / "loads"
    (tmp_path / "amdsmi.py").write_text(
        f"with open({str(loads)!r}, 'a') as file:\n    file.write('.')\n"
        "raise KeyError('libamd_smi.so')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    reader = AmdReader(Numbering())
    for _ in range(3):
        with pytest.raises(Unreadable, match="amdsmi is not installed"):
            reader.read()
    assert loads.read_text() == ".", "not tried again every second"


def test_without_the_library_or_the_driver_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unreadable, match="amdsmi is not installed"):
        AmdReader(Numbering()).read()
    monkeypatch.setattr(fake_amdsmi, "fails", True)
    with pytest.raises(Unreadable, match="cannot reach the driver"):
        AmdReader(Numbering(), lambda: fake_amdsmi).read()
