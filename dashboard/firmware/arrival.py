"""A file on its way in: written beside the store as it comes, hashed, and gone if not kept."""

import hashlib
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.utils.translation import gettext_noop as _

from dashboard.firmware.errors import ImageRefused
from dashboard.firmware.store import folder
from dashboard.sentences import Sentence

SPARE_BYTES = 256 << 20
FIELD = "file"

NO_SPACE = _("The panel's disk has no room for it: %(free)s MB are free, %(needed)s MB are needed.")
TOO_LARGE = _("The file is larger than %(limit)s MB, the most that is taken.")
UNWRITABLE = _("The file cannot be written to the panel's disk: %(reason)s.")


class Arrival:
    """One file that is not in the store yet. `discard` is safe to call at any time."""

    def __init__(self) -> None:
        incoming = folder() / "incoming"
        incoming.mkdir(mode=0o700, exist_ok=True)
        self.path = incoming / secrets.token_hex(16)
        self.size = 0
        self._sum = hashlib.sha256()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(descriptor, "wb")

    @property
    def sha256(self) -> str:
        return self._sum.hexdigest()

    def write(self, data: bytes) -> None:
        """Raises ImageRefused beyond the limit or when the disk is full."""
        self.size += len(data)
        if self.size > settings.FIRMWARE_MOST_BYTES:
            raise ImageRefused(Sentence(TOO_LARGE, limit=settings.FIRMWARE_MOST_BYTES >> 20))
        try:
            self._file.write(data)
        except OSError as error:
            raise ImageRefused(Sentence(UNWRITABLE, reason=error.strerror or "?")) from error
        self._sum.update(data)

    def finish(self) -> None:
        """All of it is on the disk. Raises ImageRefused when it has no room there."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        except OSError as error:
            raise ImageRefused(Sentence(UNWRITABLE, reason=error.strerror or "?")) from error

    def move_to(self, target: Path) -> None:
        self.path.replace(target)

    def discard(self) -> None:
        with suppress(OSError):  # What is still to be written has no room; it is not wanted either.
            self._file.close()
        self.path.unlink(missing_ok=True)


def check_space(size: int) -> None:
    """Raises ImageRefused where the store's disk has no room for so much."""
    free = shutil.disk_usage(folder()).free
    needed = size + SPARE_BYTES
    if free < needed:
        raise ImageRefused(Sentence(NO_SPACE, free=free >> 20, needed=needed >> 20))


def forget_strays(older_than: float) -> None:
    """What a process that was killed has left; `older_than` in Unix seconds."""
    for path in (folder() / "incoming").glob("*"):
        if path.stat().st_mtime < older_than:
            path.unlink(missing_ok=True)


class ArrivedFile(UploadedFile):  # type: ignore[type-arg]  # Generic in its stubs alone
    """In a form's files; what is not moved to the store is gone with the request."""

    def __init__(self, arrival: Arrival, refused: ImageRefused | None, **options: Any) -> None:
        super().__init__(file=None, size=arrival.size, **options)
        self.arrival = arrival
        self.refused = refused

    def close(self) -> None:
        self.arrival.discard()


class IntoTheStore(FileUploadHandler):
    """Takes the field `file`; others go to the next handler."""

    def __init__(self, request: Any = None) -> None:
        super().__init__(request)
        self._arrival: Arrival | None = None
        self._refused: ImageRefused | None = None
        self._room: ImageRefused | None = None

    def handle_raw_input(
        self, input_data: Any, META: Any, content_length: int, *_: Any, **__: Any
    ) -> None:
        try:
            check_space(content_length)
        except ImageRefused as refused:
            self._room = refused

    def new_file(self, *arguments: Any, **options: Any) -> None:
        super().new_file(*arguments, **options)
        self._arrival = Arrival() if self.field_name == FIELD else None
        self._refused = self._room

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes | None:
        if self._arrival is None:
            return raw_data
        if self._refused is None:
            try:
                self._arrival.write(raw_data)
            except ImageRefused as refused:
                self._refused = refused
        return None

    def file_complete(self, file_size: int) -> ArrivedFile | None:
        if self._arrival is None:
            return None
        arrival, self._arrival = self._arrival, None
        try:
            arrival.finish()
        except ImageRefused as refused:
            self._refused = self._refused or refused
        return ArrivedFile(
            arrival, self._refused, name=self.file_name, content_type=self.content_type
        )

    def upload_interrupted(self) -> None:
        if self._arrival is not None:
            self._arrival.discard()
            self._arrival = None
