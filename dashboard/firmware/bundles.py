"""A vendor's bundle: a zip or plain tar with `tandem-bundle.json`, which names what is in it.

Only what the manifest names is read, each under a name of our own and never beyond its size, so
what else an archive holds (paths, links, devices) does not matter.
"""

import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec
from django.db import transaction
from django.utils.translation import gettext_noop as _

from dashboard.audit import Actor
from dashboard.choices import Component
from dashboard.firmware.arrival import Arrival, check_space
from dashboard.firmware.errors import ImageRefused
from dashboard.firmware.images import SHA256, About, take
from dashboard.firmware.signatures import MOST_SIGNATURE_BYTES
from dashboard.firmware.store import is_here, path_of
from dashboard.models import FirmwareImage
from dashboard.models.firmware import ImageSource
from dashboard.sentences import Sentence

MANIFEST = "tandem-bundle.json"
MOST_MANIFEST_BYTES = 256 * 1024
MOST_IMAGES = 64
MOST_MEMBERS = 4096
CHUNK = 1 << 20
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Others may ask for as much memory as they like."""
FAULTS = (
    OSError,
    EOFError,
    KeyError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    struct.error,
)

NO_BUNDLE = _("This is neither a zip nor an uncompressed tar archive.")
NO_MANIFEST = _("The bundle holds no tandem-bundle.json, or one that cannot be read: %(reason)s")
MISSING = _("The bundle's manifest names %(file)s, which is not in it as an ordinary file.")
BROKEN = _("The bundle cannot be read at %(file)s.")
TOO_MUCH = _("%(file)s in the bundle is larger than the manifest says.")
TOO_MANY = _("The bundle holds too many files.")
BAD_ENTRY = _("The manifest's entry for %(file)s is not right: %(reason)s")


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One image in the manifest."""

    file: str
    sha256: str
    size: int
    component: str
    fits: list[str]
    version: str
    reversible: bool | None = None
    signature: str = ""
    """Of the file that holds it; empty: the vendor gives none."""
    notes: str = ""


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    images: list[Entry]
    vendor: str = ""


class Archive:
    """Members by their names; anything but an ordinary file is not there."""

    def __init__(
        self, members: Mapping[str, int], opener: Callable[[str], IO[bytes] | None]
    ) -> None:
        self._members = members
        self._opener = opener

    def chunks(self, name: str, most: int) -> Iterator[bytes]:
        """Raises ImageRefused as soon as there is more than `most`."""
        if name not in self._members:
            raise ImageRefused(Sentence(MISSING, file=name))
        try:
            stream = self._opener(name)
            if stream is None:
                raise ImageRefused(Sentence(MISSING, file=name))
            with stream:
                read = 0
                while chunk := stream.read(CHUNK):
                    read += len(chunk)
                    if read > most:
                        raise ImageRefused(Sentence(TOO_MUCH, file=name))
                    yield chunk
        except FAULTS as error:
            raise ImageRefused(Sentence(BROKEN, file=name)) from error

    def content(self, name: str, most: int) -> bytes:
        return b"".join(self.chunks(name, most))


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Raises ImageRefused for what is no archive."""
    try:
        archive = _zip(path) if zipfile.is_zipfile(path) else _tar(path)
    except FAULTS as error:
        raise ImageRefused(NO_BUNDLE) from error
    with archive[0]:
        yield archive[1]


def _zip(path: Path) -> tuple[IO[bytes] | zipfile.ZipFile | tarfile.TarFile, Archive]:
    held = zipfile.ZipFile(path)
    listed = held.infolist()
    if len(listed) > MOST_MEMBERS:
        held.close()
        raise ImageRefused(TOO_MANY)
    links = 0o120000
    members = {
        info.filename: info.file_size
        for info in listed
        if not info.is_dir()
        and (info.external_attr >> 16) & 0o170000 != links
        and info.compress_type in PACKED
    }
    return held, Archive(members, held.open)


def _tar(path: Path) -> tuple[IO[bytes] | zipfile.ZipFile | tarfile.TarFile, Archive]:
    held = tarfile.open(path, "r:")  # noqa: SIM115  # Closed by `opened`.
    members: dict[str, int] = {}
    for count, info in enumerate(held):
        if count >= MOST_MEMBERS:
            held.close()
            raise ImageRefused(TOO_MANY)
        if info.isreg():
            members[info.name] = info.size
    return held, Archive(members, held.extractfile)


def manifest_of(archive: Archive) -> Manifest:
    try:
        manifest = msgspec.json.decode(
            archive.content(MANIFEST, MOST_MANIFEST_BYTES), type=Manifest
        )
    except msgspec.MsgspecError as error:
        raise ImageRefused(Sentence(NO_MANIFEST, reason=str(error))) from error
    except ImageRefused as refused:
        raise ImageRefused(Sentence(NO_MANIFEST, reason=refused.sentence)) from refused
    if manifest.format != "tandem-bundle-1" or not 0 < len(manifest.images) <= MOST_IMAGES:
        words = f"format {manifest.format!r}, {len(manifest.images)} images"
        raise ImageRefused(Sentence(NO_MANIFEST, reason=words))
    for entry in manifest.images:
        _check(entry)
    return manifest


def _check(entry: Entry) -> None:
    faults = (
        (not SHA256.fullmatch(entry.sha256), "sha256"),
        (entry.size <= 0, "size"),
        (entry.component not in Component.values, "component"),
        (not entry.fits or not all(entry.fits), "fits"),
        (not entry.version, "version"),
    )
    for wrong, field in faults:
        if wrong:
            raise ImageRefused(Sentence(BAD_ENTRY, file=entry.file, reason=field))


def take_bundle(path: Path, actor: Actor) -> list[FirmwareImage]:
    """All its images, or none. One that is in the store already is left as it is."""
    with opened(path) as archive:
        manifest = manifest_of(archive)
        fresh = [entry for entry in manifest.images if not _known(entry)]
        check_space(sum(entry.size for entry in fresh))
        return _take_all(archive, manifest, fresh, actor)


def _known(entry: Entry) -> bool:
    image = FirmwareImage.objects.filter(sha256=entry.sha256).first()
    return image is not None and is_here(image)


def _take_all(
    archive: Archive, manifest: Manifest, entries: Sequence[Entry], actor: Actor
) -> list[FirmwareImage]:
    taken: list[FirmwareImage] = []
    try:
        with transaction.atomic():
            for entry in entries:
                taken.append(_take_one(archive, manifest, entry, actor))
    except BaseException:
        for image in taken:
            path_of(image).unlink(missing_ok=True)
        raise
    return taken


def _take_one(archive: Archive, manifest: Manifest, entry: Entry, actor: Actor) -> FirmwareImage:
    signature = archive.content(entry.signature, MOST_SIGNATURE_BYTES) if entry.signature else None
    arrival = Arrival()
    try:
        for chunk in archive.chunks(entry.file, entry.size):
            arrival.write(chunk)
        arrival.finish()
        about = About(
            name=entry.file.rsplit("/", 1)[-1],
            component=entry.component,
            fits=entry.fits,
            version=entry.version,
            vendor=manifest.vendor,
            reversible=entry.reversible,
            notes=entry.notes,
            source=ImageSource.BUNDLE,
        )
        return take(arrival, about, entry.sha256, signature, actor)
    finally:
        arrival.discard()
