"""What the readers use of AMD's library, for two devices: one tells everything, the other "N/A"."""

from enum import Enum, auto


class AmdSmiException(Exception):
    pass


class AmdSmiTemperatureType(Enum):
    EDGE = auto()
    HOTSPOT = auto()


class AmdSmiTemperatureMetric(Enum):
    CURRENT = auto()


class AmdSmiClkType(Enum):
    GFX = auto()
    MEM = auto()


FULL, BARE = "full", "bare"
handles = [FULL, BARE]
fails = False


def amdsmi_init() -> None:
    if fails:
        raise AmdSmiException("driver not loaded")


def amdsmi_get_processor_handles() -> list[str]:
    return handles


def amdsmi_get_gpu_device_uuid(handle: str) -> str:
    return f"uuid-{handle}"


def amdsmi_get_gpu_asic_info(handle: str) -> dict[str, object]:
    return {"market_name": "AMD Instinct MI300X" if handle == FULL else "N/A"}


def amdsmi_get_gpu_driver_info(handle: str) -> dict[str, object]:
    return {"driver_version": "6.12.12"}


def amdsmi_get_gpu_activity(handle: str) -> dict[str, object]:
    return {"gfx_activity": 63 if handle == FULL else "N/A", "umc_activity": 5}


def amdsmi_get_gpu_vram_usage(handle: str) -> dict[str, object]:
    if handle == BARE:
        raise AmdSmiException("not supported")
    return {"vram_total": 196288, "vram_used": 1024}


def amdsmi_get_power_info(handle: str) -> dict[str, object]:
    power = 412 if handle == FULL else "N/A"
    return {"socket_power": 0, "current_socket_power": power, "average_socket_power": "N/A"}


def amdsmi_get_power_cap_info(handle: str) -> dict[str, object]:
    return {"power_cap": 750_000_000 if handle == FULL else "N/A"}


def amdsmi_get_energy_count(handle: str) -> dict[str, object]:
    if handle == BARE:
        return {"energy_accumulator": "N/A", "counter_resolution": "N/A", "timestamp": 1}
    return {"energy_accumulator": 4_000_000, "counter_resolution": 15.25, "timestamp": 1}


def amdsmi_get_temp_metric(handle: str, sensor: Enum, metric: Enum) -> object:
    if sensor is AmdSmiTemperatureType.HOTSPOT:
        return 58 if handle == FULL else 0xFFFFFFFF
    return 44 if handle == FULL else "N/A"


def amdsmi_get_clock_info(handle: str, kind: Enum) -> dict[str, object]:
    clock = 2100 if kind is AmdSmiClkType.GFX else 1300
    return {"clk": clock if handle == FULL else "N/A"}


def amdsmi_get_gpu_total_ecc_count(handle: str) -> dict[str, object]:
    if handle == BARE:
        raise AmdSmiException("not supported")
    return {"correctable_count": 2, "uncorrectable_count": 0}


def amdsmi_get_gpu_fan_speed(handle: str, sensor: int) -> int:
    raise AmdSmiException("not supported")


def amdsmi_get_gpu_fan_speed_max(handle: str, sensor: int) -> int:
    return 255


def amdsmi_get_gpu_fan_rpms(handle: str, sensor: int) -> int:
    return 3100 if handle == FULL else 0xFFFFFFFF
