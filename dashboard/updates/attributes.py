"""Settings of a system's own firmware (Redfish `Bios.Attributes`), noted before an update and
compared after it: some updates put them back to their defaults."""

from django.utils.translation import gettext_noop as _

from dashboard.firmware.bmc import bmc_of
from dashboard.lifecycle import updates
from dashboard.models import NodeUpdate
from dashboard.sentences import Sentence
from dashboard.updates.redfish import UpdateClient
from monitoring.probes.outside import SourceError

MOST, LONGEST, TOLD = 500, 80, 8
PRIVATE = ("password", "passphrase", "secret", "key", "token", "hash")
CHANGED = _("Settings of the firmware are not what they were: %(changes)s")


def read(bmc: UpdateClient) -> dict[str, str]:
    """Of the one system that the BMC manages; empty where it tells none. Raises SourceError."""
    members = (bmc.get("/redfish/v1/Systems").body or {}).get("Members")
    if not isinstance(members, list) or len(members) != 1 or not isinstance(members[0], dict):
        return {}
    system = _path(members[0])
    link = (bmc.get(system).body or {}).get("Bios") if system else None
    path = _path(link) if isinstance(link, dict) else ""
    found = (bmc.get(path).body or {}).get("Attributes") if path else None
    if not isinstance(found, dict):
        return {}
    return {
        name[:LONGEST]: str(value)[:LONGEST]
        for name, value in list(found.items())[:MOST]
        if isinstance(value, str | int | float) and not _is_private(name)
    }


def compare(update: NodeUpdate) -> None:
    """Note what is different now, once. Nothing is held for it, nor when it cannot be read."""
    before = update.memory.get("attributes")
    source = bmc_of(update.node)
    if not before or source is None or "compared" in update.memory:
        return
    try:
        with UpdateClient(source) as bmc:
            now = read(bmc)
    except SourceError:
        return
    updates.remember(update, compared=True)
    changes = [
        f"{name}: {before[name]} → {now[name]}"
        for name in sorted(before.keys() & now.keys())
        if before[name] != now[name]
    ]
    if changes:
        more = f" … (+{len(changes) - TOLD})" if len(changes) > TOLD else ""
        told = "; ".join(changes[:TOLD]) + more
        updates.note(update, Sentence(CHANGED, changes=told))


def _is_private(name: str) -> bool:
    return any(word in name.lower() for word in PRIVATE)


def _path(link: dict[str, object]) -> str:
    target = link.get("@odata.id")
    return target if isinstance(target, str) and target.startswith("/") else ""
