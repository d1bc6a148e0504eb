"""Messages about roll-outs, over the channels that alerts are told by. A node that is held is an
alert of its own."""

from django.urls import reverse
from django.utils.translation import gettext_noop as _

from dashboard.models import Rollout
from dashboard.sentences import Sentence
from monitoring.alerts.notify import news
from monitoring.models import Severity

WANTED = _("[Approval] Firmware %(version)s waits for an administrator")
REFUSED = _("[Refused] The monthly firmware update was not made")
DONE = _("[Done] Firmware %(version)s runs")
BY = _("Asked for by %(by)s: %(reason)s")
BY_ITSELF = _("The monthly firmware update.")
NO_WAY_BACK = _("An older version cannot be put back, as far as is known.")


def tell_wanted(rollout: Rollout) -> None:
    """Somebody has to approve it."""
    lines = [Sentence(BY, by=rollout.by, reason=rollout.reason)]
    if rollout.automatic:
        lines = [Sentence(BY_ITSELF)]
    if rollout.image.reversible is not True:
        lines.append(Sentence(NO_WAY_BACK))
    _tell(rollout, Severity.WARNING, WANTED, lines)


def tell_refused(rollout: Rollout, problem: Sentence) -> None:
    """Who made one by hand reads it on the page that they are on."""
    if rollout.automatic:
        _tell(rollout, Severity.NOTE, REFUSED, [problem])


def tell_done(rollout: Rollout) -> None:
    _tell(rollout, Severity.NOTE, DONE, [])


def _tell(rollout: Rollout, severity: Severity, title: str, lines: list[Sentence]) -> None:
    nodes = ", ".join(rollout.updates.order_by("order").values_list("node__name", flat=True))
    image = Sentence("%(image)s: %(nodes)s", image=str(rollout.image), nodes=nodes)
    head = Sentence(title, version=rollout.image.version)
    path = reverse("firmware-update", args=[rollout.pk])
    news.tell(
        severity,
        title=lambda: str(head),
        lines=lambda: [str(line) for line in (image, *lines)],
        about=nodes[:120],
        path=path,
    )
