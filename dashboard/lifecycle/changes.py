"""Guarded changes of a deployment's status."""

from django.utils import timezone
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.choices import DEPLOYMENT_TRANSITIONS, DeploymentStatus
from dashboard.errors import StatusConflict
from dashboard.lifecycle.record import label
from dashboard.models import Deployment
from dashboard.sentences import Sentence


def locked(deployment_id: int) -> Deployment:
    """The row, held until the transaction ends."""
    return Deployment.objects.select_for_update(no_key=True).get(pk=deployment_id)


def refused(deployment: Deployment) -> StatusConflict:
    status = label(DeploymentStatus(deployment.status).label)
    return StatusConflict(
        Sentence(
            _("%(name)s is “%(status)s” now, and that does not allow this."),
            name=deployment.name,
            status=status,
        )
    )


def move(deployment: Deployment, to: DeploymentStatus, **fields: object) -> None:
    """Change the status if nobody has changed it since `deployment` was read.

    Raises StatusConflict when the status does not allow it or exactly one row was not changed.
    """
    old = DeploymentStatus(deployment.status)
    if to not in DEPLOYMENT_TRANSITIONS[old]:
        raise refused(deployment)
    changes = {"status": to, "changed": timezone.now(), **fields}
    guard = Deployment.objects.filter(
        pk=deployment.pk, status=old, generation=deployment.generation
    )
    if guard.update(**changes) != 1:
        raise StatusConflict(
            Sentence(
                _("Somebody else changed %(name)s at the same moment; look at it again."),
                name=deployment.name,
            )
        )
    for name, value in changes.items():
        setattr(deployment, name, value)
    outbox.announce("deployment", deployment.pk)


def say_why(deployment: Deployment, reason: Sentence) -> None:
    """Set the reason alone."""
    if deployment.reason != reason:
        Deployment.objects.filter(pk=deployment.pk).update(reason=reason)
        deployment.reason = reason
        outbox.announce("deployment", deployment.pk)
