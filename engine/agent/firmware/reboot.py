"""Starting the node anew, through logind."""

from engine.agent.firmware.bus import Bus
from engine.errors import gettext_noop

SERVICE = "org.freedesktop.login1"
NOT_ALLOWED = gettext_noop(
    "This agent may not restart its node: it was started without --allow-reboot. Restart the node "
    "by hand."
)
STILL_HERE = gettext_noop(
    "The restart was asked for, and the node has not gone down within %(minutes)s minutes."
)


async def reboot(address: str | None = None) -> None:
    """Raises FirmwareError where logind refuses."""
    async with Bus(address) as bus:
        await bus.call(
            SERVICE,
            f"{SERVICE}.Manager",
            "Reboot",
            "b",
            [False],
            path="/org/freedesktop/login1",
        )
