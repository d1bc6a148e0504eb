"""NVIDIA's own binding against a library that plays the boxes: each value right, each absence with
its reason."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pynvml
import pytest

from monitoring.probes.devices import Device
from monitoring.probes.nvidia import device
from monitoring.probes.xids import GRAVE
from monitoring.samples import Sample
from tests.peers import nvml
from tests.peers.nvml import Machine

Boxes = Callable[..., Machine]

NOT_OFFERED = "This accelerator's driver does not offer it."
LOST = "The accelerator has fallen off the bus, or its driver was unloaded."
GIB = 1 << 30


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def box(libraries: Path, tmp_path: Path) -> Iterator[Boxes]:
    started: list[Machine] = []

    def start(name: str, *befallen: str) -> Machine:
        started.append(Machine(libraries, name, tmp_path, *befallen))
        return started[-1]

    yield start
    for machine in started:
        machine.close()


def told(samples: dict[str, Sample], subject: str) -> dict[str, float | str | None]:
    """Value or reason of everything that is told of a subject."""
    return {
        key.removeprefix(f"{subject} "): sample.reason if sample.value is None else sample.value
        for key, sample in samples.items()
        if sample.subject == subject and sample.metric != "energy_joules_total"
    }


def test_an_h100_of_eight(box: Boxes) -> None:
    machine = box("h100")
    samples = machine.read()
    assert {sample.subject for sample in samples.values()} == {f"gpu:{n}" for n in range(8)}
    assert told(samples, "gpu:3") == {
        "gpu_memory_used_bytes": 23 * GIB,
        "gpu_memory_total_bytes": 80 * GIB,
        "gpu_memory_headroom_bytes": 57 * GIB,
        "gpu_utilization_ratio": 0.45,
        "gpu_temperature_celsius": 51.0,
        "power_watts": 415.0,
        "gpu_power_limit_watts": 700.0,
        "gpu_clock_hertz sm": 1.98e9,
        "gpu_clock_hertz memory": 2.619e9,
        "gpu_throttled_ratio power": 0.0,
        "gpu_throttled_ratio thermal": 1.0,
        "gpu_throttled_ratio hardware": 0.0,
        "gpu_fan_ratio": "This accelerator has no fan of its own.",
        "gpu_ecc_errors_total corrected": 6.0,
        "gpu_ecc_errors_total uncorrected": 0.0,
        "gpu_ecc_errors_total remapped": 3.0,
        "gpu_health_ratio": 1.0,
        "gpu_xid_errors_total": 0.0,
        **{f"gpu_xid_errors_total {number}": 0.0 for number in GRAVE},
    }
    assert samples["gpu:3 power_watts"].source == "NVML, average of 1 s"
    energy = samples["gpu:3 energy_joules_total"]
    assert (energy.kind, energy.source) == ("measured", "NVML, energy counter")
    last = machine.devices()[7]
    assert (last.index, last.vendor, last.unified) == (7, "nvidia", False)
    assert last.name == "NVIDIA H100 80GB HBM3"
    assert (last.memory_bytes, last.driver) == (80 * GIB, "580.142")
    assert last.uuid.startswith("GPU-fa4e0000")


def test_a_gb10_whose_memory_is_the_hosts(box: Boxes) -> None:
    machine = box("gb10")
    samples = machine.read()
    values = told(samples, "gpu:0")
    total = values.pop("gpu_memory_total_bytes unified")
    headroom = values.pop("gpu_memory_headroom_bytes")
    assert total == psutil.virtual_memory().total
    assert isinstance(headroom, float)
    assert 0 < headroom < psutil.virtual_memory().total
    assert values == {
        "gpu_memory_used_bytes": 20 * GIB + (GIB >> 2),
        "gpu_utilization_ratio": 0.42,
        "gpu_temperature_celsius": 48.0,
        "power_watts": 38.4,
        "gpu_power_limit_watts": NOT_OFFERED,
        "gpu_clock_hertz sm": 1.98e9,
        "gpu_clock_hertz memory": NOT_OFFERED,
        "gpu_throttled_ratio power": 0.0,
        "gpu_throttled_ratio thermal": 1.0,
        "gpu_throttled_ratio hardware": 0.0,
        "gpu_fan_ratio": NOT_OFFERED,
        "gpu_ecc_errors_total corrected": NOT_OFFERED,
        "gpu_ecc_errors_total uncorrected": NOT_OFFERED,
        "gpu_ecc_errors_total remapped": NOT_OFFERED,
        "gpu_health_ratio": NOT_OFFERED,
        "gpu_xid_errors_total": "The kernel's log is not read on this node.",
    }
    assert samples["gpu:0 gpu_memory_used_bytes"].source == "NVML, sum over processes"
    assert samples["gpu:0 power_watts"].source == "NVML, driver's average"
    (only,) = machine.devices()
    assert (only.name, only.unified, only.memory_bytes) == ("NVIDIA GB10", True, None)


def test_an_integrated_device_that_tells_a_small_memory_is_not_believed(box: Boxes) -> None:
    samples = box("n1x").read()
    assert samples["gpu:0 gpu_memory_used_bytes"].value == 20 * GIB + (GIB >> 2)
    assert samples["gpu:0 gpu_memory_total_bytes unified"].value == psutil.virtual_memory().total


def test_without_a_power_reading_the_energy_counter_tells_it(box: Boxes) -> None:
    machine = box("h100", "nopower", "energy 0 1000")
    first = machine.read()["gpu:0 power_watts"]
    assert (first.value, first.reason) == (None, NOT_OFFERED), "it takes two readings"
    machine.befalls("nopower", "energy 0 201000")
    machine.tell("pass 2")
    power = machine.read()["gpu:0 power_watts"]
    assert power.value == pytest.approx(100.0, rel=0.5), "200 J in the two seconds that passed"
    assert (power.kind, power.source) == ("derived", "NVML, energy counter over time")


def test_without_an_energy_counter_energy_is_an_estimate(box: Boxes) -> None:
    machine = box("h100", "noenergy")
    machine.read()
    machine.tell("pass 1")
    energy = machine.read()["gpu:0 energy_joules_total"]
    assert (energy.kind, energy.source) == ("estimated", "NVML, power over time")
    assert energy.value is not None
    assert energy.value >= 412.0, "412 W for a second at least"
    machine.befalls("noenergy", "nopower")
    machine.tell("pass 60")
    again = machine.read()["gpu:0 energy_joules_total"].value
    assert again == energy.value, "nothing is added while nothing is read"


def test_all_bits_set_are_no_reading(box: Boxes) -> None:
    machine = box("gb10", "nonsense", "noenergy")
    samples = machine.read()
    assert samples["gpu:0 power_watts"].reason == NOT_OFFERED
    assert samples["gpu:0 energy_joules_total"].value is None


def test_memory_that_the_driver_hides_is_absent(box: Boxes) -> None:
    machine = box("gb10")
    machine.befalls("hidden")
    used = machine.read()["gpu:0 gpu_memory_used_bytes"]
    assert used.reason == "The driver does not say how much memory each process has."


def test_a_zero_while_an_engine_has_been_at_work_is_no_reading(box: Boxes) -> None:
    machine = box("gb10")
    machine.befalls("util 0 0")
    assert machine.read()["gpu:0 gpu_utilization_ratio"].value == 0.0
    machine.tell("serving yes")
    assert machine.read()["gpu:0 gpu_utilization_ratio"].value == 0.0, "not for ten seconds yet"
    machine.tell("pass 11")
    doubted = machine.read()["gpu:0 gpu_utilization_ratio"]
    assert doubted.value is None
    assert doubted.reason.startswith("Not measurable: the driver says 0 while")
    machine.befalls("util 0 37")
    assert machine.read()["gpu:0 gpu_utilization_ratio"].value == 0.37
    machine.befalls("util 0 0", "processes 0")
    machine.read()
    machine.tell("pass 11")
    idle = machine.read()["gpu:0 gpu_utilization_ratio"]
    assert idle.value == 0.0, "nothing runs on it: the engine works elsewhere"


def test_a_discrete_device_may_well_be_idle(box: Boxes) -> None:
    machine = box("h100")
    machine.befalls("util 2 0")
    machine.tell("serving yes")
    machine.read()
    machine.tell("pass 11")
    assert machine.read()["gpu:2 gpu_utilization_ratio"].value == 0.0


def test_one_that_falls_off_the_bus_costs_its_own_values_and_comes_back(box: Boxes) -> None:
    machine = box("h100")
    machine.befalls("lost 5")
    samples = machine.read()
    assert samples["gpu:5 power_watts"].reason == LOST
    assert samples["gpu:5 gpu_memory_used_bytes"].reason == LOST
    assert samples["gpu:4 power_watts"].value == 416.0
    machine.tell("pass 11")
    for _ in range(2):
        samples = machine.read()
        assert samples["gpu:5 power_watts"].reason == LOST
        assert samples["gpu:6 power_watts"].value == 418.0
    machine.befalls()
    machine.tell("pass 21")
    machine.read()
    assert machine.read()["gpu:5 power_watts"].value == 417.0
    assert len(machine.devices()) == 8


def test_one_that_is_missing_at_the_start_keeps_its_number(box: Boxes) -> None:
    machine = box("h100", "lost 5")
    samples = machine.read()
    assert "gpu:5 power_watts" not in samples
    assert samples["gpu:6 power_watts"].value == 418.0
    machine.befalls()
    machine.tell("pass 11")
    machine.read()
    assert machine.read()["gpu:5 power_watts"].value == 417.0
    assert sorted(one.index for one in machine.devices()) == list(range(8))


def test_a_driver_that_lists_nothing_is_said(box: Boxes) -> None:
    machine = box("h100", "count 0")
    (absent,) = machine.read().values()
    assert absent.reason == "NVIDIA's driver is loaded and lists no accelerator."


def test_a_driver_that_is_loaded_after_the_start(box: Boxes) -> None:
    machine = box("gb10", "unloaded")
    (absent,) = machine.read().values()
    assert absent.reason == "NVIDIA's driver is not loaded."
    machine.befalls()
    machine.tell("pass 11")
    assert machine.read()["gpu:0 power_watts"].value == 38.4


def test_a_driver_that_is_loaded_anew(box: Boxes) -> None:
    machine = box("h100")
    machine.befalls("unloaded")
    machine.read()
    machine.tell("pass 11")
    machine.read()
    gone = machine.read()["gpu:0 power_watts"]
    assert gone.reason == "NVIDIA's driver is not loaded."
    machine.befalls("energy 0 5000")
    machine.tell("pass 130")
    assert machine.read()["gpu:0 energy_joules_total"].value == 5.0, "its counter began anew"


def test_faults_are_counted_as_the_driver_reports_them(box: Boxes) -> None:
    machine = box("h100")
    machine.befalls("xid 1 79", "xid 1 48", "xid 1 79")
    samples = machine.read()
    assert samples["gpu:0 gpu_xid_errors_total 79"].value == 0.0, "the first one is growth"
    assert "gpu:0 gpu_xid_errors_total 31" not in samples
    assert samples["gpu:1 gpu_xid_errors_total"].value == 3.0
    assert samples["gpu:1 gpu_xid_errors_total 79"].value == 2.0
    assert samples["gpu:1 gpu_xid_errors_total 48"].value == 1.0
    assert samples["gpu:0 gpu_xid_errors_total"].value == 0.0
    assert machine.read()["gpu:1 gpu_xid_errors_total"].value == 3.0


def test_without_events_the_kernels_log_counts_them(box: Boxes) -> None:
    machine = box("gb10")
    machine.tell("kernel")
    samples = machine.read()
    assert samples["gpu:0 gpu_xid_errors_total 79"].value == 1.0
    assert samples["gpu:0 gpu_xid_errors_total"].source == "kernel log"


def test_a_driver_that_hangs_is_late_and_then_back(box: Boxes) -> None:
    machine = box("gb10")
    assert machine.read()["gpu:0 power_watts"].value == 38.4
    machine.befalls("hang 0.5")
    machine.tell("patience 0.05")
    late = machine.read()
    assert late["gpu:0 power_watts"].reason == "It did not answer within a second."
    assert late["gpu:0 gpu_power_limit_watts"].reason == NOT_OFFERED
    machine.befalls()
    machine.tell("patience 20")
    deadline = time.monotonic() + 20
    while machine.read()["gpu:0 power_watts"].value is None:
        assert time.monotonic() < deadline, "it answers again"
        time.sleep(0.01)


def test_in_a_container_an_empty_list_of_processes_is_no_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind in ("Compute", "Graphics"):
        call = f"nvmlDeviceGet{kind}RunningProcesses_v3"
        monkeypatch.setattr(pynvml, call, lambda handle: [])
    integrated = Device(index=0, vendor="nvidia", name="GB10", unified=True)
    reader = device.DeviceReader(integrated, lambda: False)
    for inside, expected in ((False, 0.0), (True, None)):
        monkeypatch.setattr(device, "_sees_own_processes_only", lambda hidden=inside: hidden)
        used = next(reader._memory(object()))
        assert used.value == expected
    assert used.reason.startswith("The processes on the accelerator cannot be seen")


def test_limits_that_were_set_are_read_back(libraries: Path, tmp_path: Path) -> None:
    env = nvml.environment(libraries, "h100", state=str(tmp_path / "state"))
    printed = nvml.run(
        "import pynvml as N; N.nvmlInit(); h = N.nvmlDeviceGetHandleByIndex(2)\n"
        "N.nvmlDeviceSetPowerManagementLimit(h, 350000)\n"
        "N.nvmlDeviceSetGpuLockedClocks(h, 0, 1200)\n"
        "print(N.nvmlDeviceGetEnforcedPowerLimit(h), N.nvmlDeviceGetClockInfo(h, 1))\n"
        "N.nvmlDeviceResetGpuLockedClocks(h); print(N.nvmlDeviceGetClockInfo(h, 1))",
        env,
    )
    assert printed.split() == ["350000", "1200", "1980"]


def test_a_library_that_is_not_there_is_one_absence(tmp_path: Path) -> None:
    empty = tmp_path / "none"
    empty.mkdir()
    machine = Machine(empty, "h100", tmp_path)
    (absent,) = machine.read().values()
    machine.close()
    assert (absent.subject, absent.metric) == ("node", "gpu_utilization_ratio")
    assert absent.reason == "NVIDIA's library libnvidia-ml.so.1 is not installed."
