"""Before anybody approves it: the image is what was taken in, signed as it was, and meant for
each part, and its version is a step forward."""

import hashlib
from pathlib import Path

from django.utils.translation import gettext_noop as _

from dashboard.firmware import store
from dashboard.firmware.errors import ImageRefused
from dashboard.firmware.fitting import fits
from dashboard.firmware.signatures import CHUNK, is_signed_by
from dashboard.firmware.versions import Order, compare
from dashboard.lifecycle import updates
from dashboard.models import FirmwareImage, FirmwarePart, NodeUpdate, Rollout
from dashboard.models.firmware import Channel, ImageSource
from dashboard.sentences import Sentence

GONE = _("The file of %(image)s is not in the panel's store; upload it again.")
UNREADABLE = _("The file of %(image)s cannot be read: %(why)s.")
OTHER_SIZE = _(
    "The file of %(image)s has %(found)s bytes and not %(size)s: it was changed in the store. "
    "Upload it again."
)
OTHER_SUM = _(
    "The SHA-256 of %(image)s is %(found)s and not %(sha256)s: it was changed in the store. "
    "Upload it again."
)
UNSIGNED = _("The signature of %(image)s is not by %(key)s. Upload it again.")
NO_PART = _("%(node)s no longer lists the component %(part)s.")
NO_FIT = _("%(image)s is not made for %(part)s of %(node)s.")
FIXED = _("%(part)s of %(node)s says that it cannot be updated.")
OLDER = _(
    "%(node)s runs %(active)s, and %(version)s is older. Allow an older version if that is meant."
)
SAME = _("%(node)s runs %(version)s already.")
UNSURE = _(
    "Whether %(version)s is newer than %(active)s, which %(node)s runs, cannot be told from the "
    "names. Allow an older version if you know it."
)


def verify(rollout: Rollout) -> None:
    """It may be approved then, or is over, with the reason."""
    updates.conclude_verification(rollout, _problem(rollout))


def _problem(rollout: Rollout) -> Sentence | None:
    for update in rollout.updates.select_related("node").order_by("order"):
        problem = _of_part(rollout, update)
        if problem is not None:
            return problem
    return problem_of_image(rollout.image, by_node=_fetched_by_nodes(rollout))


def _fetched_by_nodes(rollout: Rollout) -> bool:
    """What fwupd offers is fetched, and checked again, by each node itself."""
    keys = rollout.updates.values_list("part_key", flat=True)
    parts = FirmwarePart.objects.filter(node__in=rollout.updates.values("node"), key__in=keys)
    from_lvfs = rollout.image.source == ImageSource.LVFS
    return from_lvfs and not parts.exclude(channel=Channel.FWUPD).exists()


def problem_of_image(image: FirmwareImage, *, by_node: bool) -> Sentence | None:
    """As it lies on the disk now. `by_node`: it need not lie there."""
    path = store.path_of(image)
    if not path.is_file():
        return None if by_node else Sentence(GONE, image=str(image))
    try:
        return _of_file(image, path)
    except OSError as error:
        return Sentence(UNREADABLE, image=str(image), why=error.strerror or "?")
    except ImageRefused as error:
        return error.sentence


def _of_file(image: FirmwareImage, path: Path) -> Sentence | None:
    size = path.stat().st_size
    # What fwupd offers is known by its sum alone.
    if size != image.size and (image.size or image.source != ImageSource.LVFS):
        return Sentence(OTHER_SIZE, image=str(image), found=size, size=image.size)
    found = _sum_of(path)
    if found != image.sha256:
        return Sentence(OTHER_SUM, image=str(image), found=found, sha256=image.sha256)
    return _of_signature(image, path)


def _sum_of(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _of_signature(image: FirmwareImage, path: Path) -> Sentence | None:
    key = image.signed_by
    if image.signature is None and key is None:
        return None
    signed = (
        image.signature is not None
        and key is not None
        and is_signed_by(path, bytes(image.signature), key.pem)
    )
    return None if signed else Sentence(UNSIGNED, image=str(image), key=key.name if key else "?")


def _of_part(rollout: Rollout, update: NodeUpdate) -> Sentence | None:
    node, image = update.node.name, rollout.image
    part = FirmwarePart.objects.filter(node=update.node_id, key=update.part_key).first()
    if part is None:
        return Sentence(NO_PART, node=node, part=update.part_key)
    if not part.updatable:
        return Sentence(FIXED, node=node, part=part.name)
    if not fits(image.component, image.fits, part):
        return Sentence(NO_FIT, image=str(image), part=part.name, node=node)
    return _of_version(rollout, node, part)


def _of_version(rollout: Rollout, node: str, part: FirmwarePart) -> Sentence | None:
    version = rollout.image.version
    if part.active == version:
        return Sentence(SAME, node=node, version=version)
    if rollout.allow_downgrade:
        return None
    told = {"node": node, "active": part.active or "?", "version": version}
    match compare(version, part.active):
        case Order.NEWER:
            return None
        case Order.OLDER:
            return Sentence(OLDER, **told)
        case Order.SAME:
            return Sentence(SAME, node=node, version=version)
    return Sentence(UNSURE, **told)
