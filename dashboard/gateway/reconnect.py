"""A caller who comes back for the rest of a streamed answer."""

from django.utils.translation import gettext as _

from dashboard.gateway import ids
from dashboard.gateway.directory import current_targets
from dashboard.gateway.errors import ApiError
from dashboard.gateway.hold import Request
from dashboard.gateway.passage import Passage
from dashboard.gateway.patience import patiently
from dashboard.gateway.routes import NotReady, Target, find_launch
from dashboard.gateway.trace import Trace
from dashboard.gateway.upstream import Broken
from dashboard.models import ApiKey

GRACE_SECONDS = 30
"""How long heads keep an answer with nobody listening."""


async def reconnected(
    stream: str, owner: ApiKey, record: Trace | None = None
) -> tuple[Passage, str]:
    """The passage of a stream that this key began, and its number; 404 when there is none."""
    known = ids.read(stream)
    if known is None or known.owner != owner.pk:
        raise unknown_stream()
    passage = await attached(known.number, known.launch, record=record)
    if passage is None:
        raise unknown_stream()
    if passage.request.route in owner.hidden_routes:
        passage.close()
        raise unknown_stream()
    return passage, known.number


async def attached(
    number: str, launch: str, *, orphan: bool = False, record: Trace | None = None
) -> Passage | None:
    """Take a stream up where it is; None where no head has it. It may have left its launch."""
    home = await patiently(find_launch, launch)
    if home is None:
        return None
    request = Request(route=home.route, path="", body=b"", stream=True, id=number)
    for target in await _candidates(home):
        passage = Passage(request, record)
        try:
            answer = await passage.attach(target, orphan=orphan)
        except Broken:
            continue
        if answer.is_stream:
            return passage
        answer.close()
    return None


async def _candidates(home: Target) -> list[Target]:
    try:
        others = await current_targets(home.route)
    except NotReady:
        others = []
    return [home, *(target for target in others if target.launch != home.launch)]


def unknown_stream() -> ApiError:
    text = _(
        "There is no such stream, or it is over. An answer can be continued with its own key, "
        "until %(seconds)s seconds after its connection broke."
    )
    return ApiError(text % {"seconds": GRACE_SECONDS}, status=404, code="unknown_stream")
