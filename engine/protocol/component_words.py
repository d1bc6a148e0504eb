"""Which kind of component something is, by what its maker calls it. Pure."""

import re

WORDS: tuple[tuple[str, str], ...] = (
    (r"\bbmc|bmc\b|bmc_|idrac|\bilo\b|ibmc|\bxcc\b|openbmc", "bmc"),
    (r"\berot|\bec\b|embedded controller|cpld", "ec"),
    (r"gpu|hgx|accelerator|\bnpu|vbios|inforom|nvswitch|\bmcu\b", "gpu"),
    (r"\bnic|network|ethernet|connectx|bluefield|infiniband|adapter", "nic"),
    (r"nvme|ssd|drive|disk|hdd|storage|m\.2", "drive"),
    (r"bios|uefi|system firmware", "uefi"),
    (r"usb.?c|power delivery|\bpd\b|pd controller|retimer", "pd"),
)


def component_of(*names: str) -> str:
    """The first kind whose words one of the names has, a value of `dashboard.choices.Component`;
    `other` where none has any."""
    for name in names:
        for pattern, component in WORDS:
            if re.search(pattern, name.replace("_", " "), re.IGNORECASE):
                return component
    return "other"
