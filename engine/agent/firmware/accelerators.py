"""Drivers and firmware of accelerators, as far as their makers' libraries and tools tell them."""

from collections.abc import Iterator, Sequence

import pynvml

from engine.errors import Said, gettext_noop, said
from engine.protocol.firmware import Part
from monitoring.probes.devices import Device
from monitoring.probes.nvidia.calls import Missing, ask
from monitoring.probes.roots import Roots, text_of

MAKERS = {"nvidia": "NVIDIA", "amd": "AMD", "ascend": "Ascend", "intel": "Intel"}
NO_DRIVER = gettext_noop("The driver does not tell its version.")
NO_VBIOS = gettext_noop("The driver does not tell this accelerator's firmware.")


def accelerator_parts(roots: Roots, devices: Sequence[Device]) -> list[Part]:
    """Of those that the probes know; Ascend's own firmware is in `ascend`."""
    return [*_drivers(devices), *_nvidia(devices), *_amd(roots, devices)]


def _drivers(devices: Sequence[Device]) -> Iterator[Part]:
    for vendor in sorted({device.vendor for device in devices}):
        versions = {device.driver for device in devices if device.vendor == vendor}
        version = next(iter(sorted(filter(None, versions))), "")
        yield Part(
            key=f"read:driver:{vendor}",
            component="driver",
            channel="read",
            name=f"{MAKERS[vendor]} driver",
            model=vendor,
            active=version[:80],
            reason=Said() if version else said(NO_DRIVER),
        )


def _nvidia(devices: Sequence[Device]) -> Iterator[Part]:
    """NVML counts who has opened it: the telemetry's own use is not disturbed."""
    ours = [device for device in devices if device.vendor == "nvidia"]
    if not ours:
        return
    opened = ask(pynvml.nvmlInit)
    try:
        for device in ours:
            yield _gpu(device, opened if isinstance(opened, Missing) else _vbios(device))
    finally:
        if not isinstance(opened, Missing):
            ask(pynvml.nvmlShutdown)


def _vbios(device: Device) -> str | Missing:
    handle = ask(pynvml.nvmlDeviceGetHandleByUUID, device.uuid)
    return handle if isinstance(handle, Missing) else ask(pynvml.nvmlDeviceGetVbiosVersion, handle)


def _amd(roots: Roots, devices: Sequence[Device]) -> Iterator[Part]:
    """The kernel's driver shows them in the order of the cards, as the tool counts them."""
    ours = [device for device in devices if device.vendor == "amd"]
    cards = sorted((roots.sysfs / "class/drm").glob("card[0-9]*/device/vbios_version"))
    versions = [text_of(path) or "" for path in cards]
    for place, device in enumerate(ours):
        known = versions[place] if len(versions) == len(ours) else ""
        yield _gpu(device, known or Missing(NO_VBIOS))


def _gpu(device: Device, version: str | Missing) -> Part:
    return Part(
        key=f"read:gpu:{device.uuid or device.index}",
        component="gpu",
        channel="read",
        name=f"{device.name} ({device.subject})",
        model=device.name,
        active="" if isinstance(version, Missing) else str(version)[:80],
        reason=said(version.reason) if isinstance(version, Missing) else Said(),
    )
