"""Intel devices from CSV whose columns are found by name, whichever way the tool is asked."""

import os
from pathlib import Path

import pytest

from monitoring.probes.devices import Numbering, Unreadable
from monitoring.probes.intel import IntelReader, parse
from monitoring.samples import Sample

MIB = 1 << 20

NEW = """\
index, name, uuid, driver_version, utilization.gpu [%], memory.used [MiB], memory.total [MiB], \
temperature.gpu, power.draw [W], clocks.current.graphics [MHz]
0, Intel(R) Data Center GPU Max 1550, 00000000-0000-003a-0000-002f0bd58086, 1.6, 55, 1024, 65536, \
41, 310.25, 1600
1, Intel(R) Data Center GPU Max 1550, , 1.6, N/A, 2048, 65536, [N/A], [Not Supported], 1550
"""
OLD = """\
Timestamp, DeviceId, GPU Utilization (%), GPU Power (W), GPU Frequency (MHz), \
GPU Core Temperature (Celsius Degree), GPU Energy Consumed (J), GPU Memory Used (MiB)
06:14:46.000, 0, 12.50, 118.32, 1550, 44.50, 5021.5, 512.25
"""


def read(text: str) -> dict[tuple[str, str], Sample]:
    samples = IntelReader(Numbering(), lambda: text).read()
    return {(sample.subject, sample.metric): sample for sample in samples}


def test_the_new_way() -> None:
    samples = read(NEW)
    values = {metric: s.value for (subject, metric), s in samples.items() if subject == "gpu:0"}
    assert values == {
        "gpu_utilization_ratio": 0.55,
        "gpu_memory_used_bytes": 1024 * MIB,
        "gpu_memory_total_bytes": 65536 * MIB,
        "gpu_memory_headroom_bytes": 64512 * MIB,
        "gpu_temperature_celsius": 41.0,
        "gpu_clock_hertz": 1.6e9,
        "power_watts": 310.25,
        "energy_joules_total": 0.0,
    }
    for metric in ("gpu_utilization_ratio", "gpu_temperature_celsius", "power_watts"):
        absent = samples["gpu:1", metric]
        assert (absent.value, absent.reason) == (None, "The accelerator's tool does not tell it.")


def test_the_old_way() -> None:
    samples = read(OLD)
    assert samples["gpu:0", "gpu_utilization_ratio"].value == 0.125
    assert samples["gpu:0", "power_watts"].value == 118.32
    assert samples["gpu:0", "gpu_memory_used_bytes"].value == 512.25 * MIB
    assert samples["gpu:0", "gpu_memory_total_bytes"].value is None
    energy = samples["gpu:0", "energy_joules_total"]
    assert (energy.value, energy.kind) == (5021.5, "measured")


def test_a_tool_that_knows_only_the_old_way_is_asked_that_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, tool = tmp_path / "recorded", tmp_path / "xpu-smi"
    recorded.write_text(OLD)
    tool.write_text(f'#!/bin/sh\n[ "$1" = dump ] || exit 2\ncat "{recorded}"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    reader = IntelReader(Numbering())
    assert {sample.subject for sample in reader.read()} == {"gpu:0"}
    tool.write_text("#!/bin/sh\necho no device\n")
    with pytest.raises(Unreadable, match="cannot be read"):
        IntelReader(Numbering()).read()


def test_rows_without_a_number_are_no_devices() -> None:
    assert [row["index"] for row in parse(NEW)] == ["0", "1"]
    assert parse(NEW)[0]["name"] == "Intel(R) Data Center GPU Max 1550"
