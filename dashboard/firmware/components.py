"""Which kind of component a part is, by what its maker calls it. Pure."""

import re

from dashboard.choices import Component

WORDS: tuple[tuple[str, Component], ...] = (
    (r"bmc|idrac|ilo\b|ibmc|xcc|manager|openbmc", Component.BMC),
    (r"gpu|hgx|accelerator|npu|vbios|inforom|nvswitch|fpga|baseboard", Component.GPU),
    (r"nic\b|nic_|network|ethernet|connectx|bluefield|infiniband|adapter", Component.NIC),
    (r"nvme|ssd|drive|disk|hdd|storage|m\.2", Component.DRIVE),
    (r"bios|uefi|system firmware|sbios", Component.UEFI),
    (r"usb.?c|power delivery|\bpd\b|retimer", Component.PD),
    (r"\bec\b|embedded controller|erot|cpld", Component.EC),
)


def component_of(*names: str) -> Component:
    """The first kind whose words one of the names has; `OTHER` where none has any."""
    for name in names:
        for pattern, component in WORDS:
            if re.search(pattern, name, re.IGNORECASE):
                return component
    return Component.OTHER
