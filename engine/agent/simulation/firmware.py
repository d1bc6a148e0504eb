"""Made-up firmware: plausible, and in one of four boxes older than in the others."""

from engine.errors import gettext_noop, said
from engine.protocol.firmware import Part

OLDER_EVERY = 4
NO_FWUPD = gettext_noop("A simulated node has no fwupd.")


def simulated_parts(number: int, devices: int) -> list[Part]:
    older = number % OLDER_EVERY == OLDER_EVERY - 1
    return [
        _part("uefi", "UEFI/BIOS", "1.8.2" if older else "1.9.0", "Simulated board"),
        _part("kernel", "Linux", "6.8.0-simulated", "x86_64"),
        _part("driver", "NVIDIA driver", "580.95" if older else "580.142", "nvidia"),
        _part("nic", "eth0 (simulated)", "28.39.1002", "15b3:1021"),
        *(
            _part("gpu", f"Simulated accelerator 80 GB (gpu:{index})", "96.00.74", "Simulated")
            for index in range(devices)
        ),
        Part(key="fwupd:", component="other", channel="fwupd", name="fwupd", reason=said(NO_FWUPD)),
    ]


def _part(component: str, name: str, version: str, model: str) -> Part:
    return Part(
        key=f"read:{name}",
        component=component,
        channel="read",
        name=name,
        model=model,
        active=version,
    )
