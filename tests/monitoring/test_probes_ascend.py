"""Ascend devices from the table that `npu-smi info` prints, in the widths of two releases."""

import os
from pathlib import Path

import pytest

from monitoring.probes.ascend import AscendReader, parse
from monitoring.probes.command import ToolError
from monitoring.probes.devices import Numbering, Unreadable
from monitoring.samples import Sample

MIB = 1 << 20

SINGLE = """
+--------------------------------------------------------------------------------------+
| npu-smi 25.2.0                   Version: 25.2.0                                     |
+---------------------------+---------------+------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)  Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)|
+===========================+===============+==========================================+
| 0     910B3               | OK            | 98.4        50                0    / 0   |
| 0                         | 0000:C1:00.0  | 37          0    / 0          3369 / 65536|
+===========================+===============+==========================================+
| 1     910B3               | Warning       | 102.7       NA                0    / 0   |
| 0                         | 0000:01:00.0  | NA          0    / 0          57784/ 65536|
+===========================+===============+==========================================+
+---------------------------+---------------+------------------------------------------+
| NPU     Chip              | Process id    | Process name | Process memory(MB)        |
+===========================+===============+==========================================+
| 1       0                 | 4321          | python3      | 54000                     |
+===========================+===============+==========================================+
"""
PAIRED = """
+----------------------------------------------------------------------------------------------+
| npu-smi 26.0.rc2                            Version: 26.0.rc2                                |
+---------------------------+---------------+--------------------------------------------------+
| NPU   Name                | Health        | Power(W)             Temp(C)     Hugepages-Usage |
| Chip  Phy-ID              | Bus-Id        | AICore(%)            Memory-Usage(MB)  HBM-Usage |
+===========================+===============+==================================================+
| 0     Ascend910           | OK            | 162.6                34          0    / 0        |
| 0     0                   | 0000:9D:00.0  | 0                    0    / 0    3419 / 65536    |
+----------------------------------------------------------------------------------------------+
| 0     Ascend910           | OK            | -                    35          0    / 0        |
| 1     1                   | 0000:9F:00.0  | 12                   0    / 0    2874 / 65536    |
+===========================+===============+==================================================+
| No running processes found in NPU 0                                                          |
+===========================+===============+==================================================+
"""


def read(text: str) -> dict[tuple[str, str], Sample]:
    samples = AscendReader(Numbering(), lambda: text).read()
    return {(sample.subject, sample.metric): sample for sample in samples}


def test_each_chip_has_its_readings() -> None:
    samples = read(SINGLE)
    values = {metric: s.value for (subject, metric), s in samples.items() if subject == "gpu:0"}
    assert values == {
        "gpu_utilization_ratio": 0.37,
        "gpu_memory_used_bytes": 3369 * MIB,
        "gpu_memory_total_bytes": 65536 * MIB,
        "gpu_memory_headroom_bytes": (65536 - 3369) * MIB,
        "gpu_temperature_celsius": 50.0,
        "gpu_health_ratio": 1.0,
        "power_watts": 98.4,
        "energy_joules_total": 0.0,
    }
    assert samples["gpu:0", "energy_joules_total"].kind == "estimated"


def test_what_is_not_told_is_absent_and_a_warning_is_no_health() -> None:
    samples = read(SINGLE)
    assert samples["gpu:1", "gpu_health_ratio"].value == 0.0
    assert samples["gpu:1", "gpu_memory_used_bytes"].value == 57784 * MIB
    for metric in ("gpu_utilization_ratio", "gpu_temperature_celsius"):
        assert samples["gpu:1", metric].reason == "The accelerator's tool does not tell it."


def test_the_second_die_has_no_power_of_its_own() -> None:
    samples = read(PAIRED)
    assert samples["gpu:0", "power_watts"].value == 162.6
    second = samples["gpu:1", "power_watts"]
    assert (second.value, second.reason) == (
        None,
        "Its power is counted with the card's first die.",
    )
    assert samples["gpu:1", "energy_joules_total"].value is None
    assert samples["gpu:1", "gpu_utilization_ratio"].value == 0.12


def test_what_a_chip_is() -> None:
    reader = AscendReader(Numbering(), lambda: PAIRED)
    reader.read()
    first, second = reader.devices()
    assert (first.name, first.uuid, first.driver) == ("Ascend910", "0000:9D:00.0", "26.0.rc2")
    assert (second.index, second.memory_bytes) == (1, 65536 * MIB)


@pytest.mark.parametrize(
    "text", ["", "dcmi module initialize failed. ret is -8005", "| 1 | 2 | 3 |"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ToolError) as error:
        parse(text)
    assert error.value.reason == "The accelerator's tool answered something that cannot be read."


def test_the_tool_itself_is_run_and_its_failure_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "npu-smi"
    recorded = tmp_path / "recorded"
    recorded.write_text(PAIRED)
    tool.write_text(f'#!/bin/sh\n[ "$1" = info ] && cat "{recorded}"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    reader = AscendReader(Numbering())
    assert len(reader.read()) == 16
    tool.write_text("#!/bin/sh\necho driver is not loaded >&2; exit 1\n")
    with pytest.raises(Unreadable, match="failed"):
        AscendReader(Numbering()).read()
    tool.unlink()
    with pytest.raises(Unreadable, match="not installed"):
        AscendReader(Numbering()).read()
