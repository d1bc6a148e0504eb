"""Taking images into the store, and out of it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from django.db import IntegrityError, transaction
from django.utils.translation import gettext_noop as _

from dashboard import audit
from dashboard.audit import Actor
from dashboard.firmware import preapproval
from dashboard.firmware.arrival import Arrival
from dashboard.firmware.errors import ImageInUse, ImageRefused
from dashboard.firmware.pldm import Package, read_package
from dashboard.firmware.signatures import MOST_SIGNATURE_BYTES, is_signed_by
from dashboard.firmware.store import is_here, path_of
from dashboard.models import FirmwareImage, FirmwareKey, FirmwarePart
from dashboard.models.firmware import ImageSource
from dashboard.sentences import Sentence
from dashboard.texts import storable

SHA256 = re.compile(r"[0-9a-f]{64}")

WRONG_SUM = _(
    "The file is not the one you mean: its SHA-256 is %(found)s, you entered %(expected)s."
)
EMPTY = _("The file is empty.")
KNOWN = _("This very file is in the store already, as %(image)s.")
UNSIGNED_BY_US = _(
    "The signature is by none of the vendor keys that are trusted here, or the file was changed."
)
LARGE_SIGNATURE = _("The signature is larger than 64 kB; that is none.")
NO_VERSION = _("Enter the version; the file does not tell it.")
IN_USE = _("%(image)s belongs to a roll-out and stays for its history.")
NOT_OFFERED = _("fwupd on %(node)s offers nothing for %(part)s that its LVFS sum is known of.")


@dataclass(frozen=True, kw_only=True)
class About:
    """What a person or a manifest says of a file."""

    name: str
    component: str
    fits: Sequence[str]
    version: str = ""
    vendor: str = ""
    reversible: bool | None = None
    notes: str = ""
    source: ImageSource = ImageSource.UPLOAD


def sha256_text(text: str) -> str:
    """As people paste them: in capitals, with a file name behind, with `sha256:` before."""
    first = text.strip().lower().removeprefix("sha256:").split(maxsplit=1)
    return first[0] if first else ""


def take(
    arrival: Arrival, about: About, expected: str, signature: bytes | None, actor: Actor
) -> FirmwareImage:
    """The image, in the store. Raises ImageRefused, and then nothing is left of it. `signature`:
    None where the vendor gives none."""
    try:
        return _take(arrival, about, expected, signature, actor)
    finally:
        arrival.discard()


def _take(
    arrival: Arrival, about: About, expected: str, signature: bytes | None, actor: Actor
) -> FirmwareImage:
    if not arrival.size:
        raise ImageRefused(EMPTY)
    if arrival.sha256 != expected:
        raise ImageRefused(Sentence(WRONG_SUM, found=arrival.sha256, expected=expected))
    known = FirmwareImage.objects.filter(sha256=expected).first()
    if known is not None and is_here(known):
        raise ImageRefused(Sentence(KNOWN, image=str(known)))
    signer = None if signature is None else signer_of(arrival, signature)
    package = read_package(arrival.path)
    version = about.version or (package.version if package else "")
    if not version:
        raise ImageRefused(NO_VERSION)
    return _store(arrival, about, version, package, signature, signer, actor, known)


def signer_of(arrival: Arrival, signature: bytes) -> FirmwareKey:
    """Which trusted key made it; raises ImageRefused when none did."""
    if len(signature) > MOST_SIGNATURE_BYTES:
        raise ImageRefused(LARGE_SIGNATURE)
    for key in FirmwareKey.objects.all():
        if is_signed_by(arrival.path, signature, key.pem):
            return key
    raise ImageRefused(UNSIGNED_BY_US)


def _store(
    arrival: Arrival,
    about: About,
    version: str,
    package: Package | None,
    signature: bytes | None,
    signer: FirmwareKey | None,
    actor: Actor,
    known: FirmwareImage | None,
) -> FirmwareImage:
    image = known or FirmwareImage(sha256=arrival.sha256, source=about.source)
    image.name, image.component = storable(about.name)[:200], about.component
    image.vendor, image.version = storable(about.vendor)[:80], storable(version)[:80]
    image.fits = [storable(each) for each in about.fits]
    image.size = arrival.size
    image.signature, image.signed_by = signature, signer
    image.reversible = about.reversible
    notes = "\n".join(filter(None, (about.notes, package.words if package else "")))
    image.notes = storable(notes)
    image.uploaded_by_id, image.by = actor.user_id, actor.name[:150]
    preapproval.clear(image)
    target = path_of(image)
    try:
        with transaction.atomic():
            image.save()
            audit.note(actor, "firmware.image.add", image, after=_told(image))
            arrival.move_to(target)
    except IntegrityError as error:  # The same file came twice at once.
        raise ImageRefused(Sentence(KNOWN, image=image.name)) from error
    return image


def from_offer(part: FirmwarePart, actor: Actor) -> FirmwareImage:
    """What fwupd on a node offers from LVFS, to be fetched by nodes themselves. The same again is
    the same image. Raises ImageRefused where it is not known well enough."""
    told = part.details
    sha256 = str(told.get("offer sha256", ""))
    if not part.available or not SHA256.fullmatch(sha256) or not told.get("offer address"):
        raise ImageRefused(Sentence(NOT_OFFERED, node=part.node.name, part=part.name))
    with transaction.atomic():
        image, added = FirmwareImage.objects.get_or_create(
            sha256=sha256,
            defaults={
                "name": str(told.get("offer file") or f"{part.name}.cab")[:200],
                "component": part.component,
                "vendor": str(told.get("maker", ""))[:80],
                "fits": [part.model or part.name],
                "version": part.available,
                "size": 0,
                "source": ImageSource.LVFS,
                "notes": plain_text(str(told.get("offer description", ""))),
                "uploaded_by_id": actor.user_id,
                "by": actor.name[:150],
            },
        )
        if added:
            audit.note(actor, "firmware.image.add", image, after=_told(image))
    return image


def plain_text(markup: str) -> str:
    """AppStream's few elements, without them."""
    broken = re.sub(r"</(p|li|ul|ol)>", "\n", markup)
    lines = re.sub(r"<[^>]*>", "", broken).splitlines()
    return "\n".join(line.strip() for line in lines if line.strip())[:2000]


def remove(image: FirmwareImage, actor: Actor) -> None:
    """Row and file. Raises ImageInUse where a roll-out names it."""
    if image.rollouts.exists():
        raise ImageInUse(Sentence(IN_USE, image=str(image)))
    path = path_of(image)
    with transaction.atomic():
        audit.note(actor, "firmware.image.remove", image, before=_told(image))
        image.delete()
        transaction.on_commit(partial(path.unlink, missing_ok=True))


def _told(image: FirmwareImage) -> dict[str, object]:
    return {
        "sha256": image.sha256,
        "size": image.size,
        "component": image.component,
        "version": image.version,
        "fits": image.fits,
        "source": image.source,
        "signed by": image.signed_by.name if image.signed_by else None,
    }


def patterns(text: str) -> list[str]:
    """One a line or between commas."""
    found: Iterable[str] = (part.strip() for part in re.split(r"[\n,]", text))
    return [part for part in found if part]
