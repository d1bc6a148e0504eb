"""An administrator lets the monthly update use an image without being asked again."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import audit
from dashboard.access import may
from dashboard.audit import Actor
from dashboard.choices import Role
from dashboard.errors import StatusConflict
from dashboard.models import FirmwareImage
from dashboard.sentences import Sentence

OWN = _("Somebody else must approve it: two people look before firmware changes.")


@transaction.atomic
def give(image: FirmwareImage, actor: Actor, why: str) -> None:
    """Not by who brought the image. Raises StatusConflict."""
    image = FirmwareImage.objects.select_for_update(of=("self",)).get(pk=image.pk)
    if image.uploaded_by_id is not None and image.uploaded_by_id == actor.user_id:
        raise StatusConflict(Sentence(OWN))
    image.preapprover_id, image.preapproved_by = actor.user_id, str(actor)[:150]
    image.preapproved_at, image.preapproved_why = timezone.now(), why[:300]
    image.save()
    audit.note(actor, "firmware.preapprove", image, why=why)


@transaction.atomic
def withdraw(image: FirmwareImage, actor: Actor) -> None:
    image = FirmwareImage.objects.select_for_update(of=("self",)).get(pk=image.pk)
    if image.preapproved_at is None:
        return
    before = {"approved by": image.preapproved_by}
    clear(image)
    image.save()
    audit.note(actor, "firmware.preapprove.withdraw", image, before=before)


def clear(image: FirmwareImage) -> None:
    """It was given for what the image was until now."""
    image.preapprover, image.preapproved_by = None, ""
    image.preapproved_at, image.preapproved_why = None, ""


def holder(image: FirmwareImage) -> Actor | None:
    """Who stands for it; None where nobody does, or does not administer any more."""
    user = image.preapprover
    if image.preapproved_at is None or user is None or not may(user, Role.ADMIN):
        return None
    return Actor(user.get_username(), user.pk, "schedule")
