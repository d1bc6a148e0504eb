"""What firmware a BMC lists: `UpdateService/FirmwareInventory`, and staged versions where it tells
them."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from monitoring.probes.outside import SourceError
from monitoring.probes.redfish import tree
from monitoring.probes.redfish.client import SLOW, Bmc, path_of
from monitoring.samples import gettext_noop

ROUND_SECONDS = 60.0
MOST_PARTS = 128
STAGED_NAMES = ("StagedVersion", "PendingVersion", "StagedFirmwareVersion")
"""Redfish itself has no word for it; makers say it among their own properties."""

NO_SERVICE = gettext_noop("The BMC offers no update service.")
NO_INVENTORY = gettext_noop("The BMC lists no firmware.")


class ListedPart(msgspec.Struct, frozen=True, kw_only=True):
    """One member of the inventory."""

    id: str
    name: str
    path: str
    version: str = ""
    staged: str = ""
    model: str = ""
    updatable: bool = False
    lowest: str = ""
    """The lowest version that it takes; empty: not told."""
    maker: str = ""
    released: str = ""
    state: str = ""


def listed_parts(bmc: Bmc) -> list[ListedPart]:
    """Raises SourceError, also where there is nothing to list."""
    until = time.monotonic() + ROUND_SECONDS
    service = bmc.get(path_of(bmc.root, "UpdateService") or "/redfish/v1/UpdateService")
    if service is None:
        raise SourceError(NO_SERVICE)
    path = path_of(service, "FirmwareInventory") or "/redfish/v1/UpdateService/FirmwareInventory"
    collection = bmc.get(path)
    if collection is None:
        raise SourceError(NO_INVENTORY)
    return list(_parts(bmc, tree.paths(collection)[:MOST_PARTS], until))


def _parts(bmc: Bmc, paths: list[str], until: float) -> Iterator[ListedPart]:
    for path in paths:
        if time.monotonic() > until:
            raise SourceError(SLOW)
        document = bmc.get(path)
        if document is not None and tree.present(document):
            yield part_of(document, path)


def part_of(document: Mapping[str, Any], path: str) -> ListedPart:
    own = path.rstrip("/").rsplit("/", 1)[-1]
    status = document.get("Status")
    return ListedPart(
        id=_text(document, "Id") or own,
        name=_text(document, "Name") or own,
        path=path,
        version=_text(document, "Version"),
        staged=_staged(document),
        model=_text(document, "SoftwareId"),
        updatable=document.get("Updateable") is True,
        lowest=_text(document, "LowestSupportedVersion"),
        maker=_text(document, "Manufacturer"),
        released=_text(document, "ReleaseDate"),
        state=_text(status, "State") if isinstance(status, Mapping) else "",
    )


def _staged(document: Mapping[str, Any]) -> str:
    """One level below `Oem`, whatever the maker is called."""
    oem = document.get("Oem")
    makers = list(oem.values()) if isinstance(oem, Mapping) else []
    for place in (document, *makers):
        for name in STAGED_NAMES:
            if isinstance(place, Mapping) and (staged := _text(place, name)):
                return staged
    return ""


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    return value.strip()[:80] if isinstance(value, str) else ""
