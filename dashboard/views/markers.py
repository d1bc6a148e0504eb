"""`GET /telemetry/markers`: what happened in a stretch of time."""

from datetime import UTC, datetime
from typing import Literal

import msgspec
from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dashboard.markers import markers
from dashboard.views.access import hidden_of

EARLIEST, LATEST = 0.0, 4_102_444_800.0
"""Unix seconds: 1970 and 2100."""


class MarkersQuery(msgspec.Struct, frozen=True):
    scope: Literal["fleet", "node", "deployment"]
    since: float = msgspec.field(name="from")
    until: float = msgspec.field(name="to")
    id: int | None = None


@require_GET
@never_cache
def telemetry_markers(request: HttpRequest) -> JsonResponse:
    """`?scope=fleet|node|deployment&id=N&from=UNIX&to=UNIX` for whoever is signed in."""
    if not request.user.is_authenticated:
        return JsonResponse({"error": _("Sign in to see telemetry.")}, status=401)
    given = {name: value for name, value in request.GET.items() if value}
    try:
        query = msgspec.convert(given, MarkersQuery, strict=False)
    except msgspec.ValidationError as error:
        return JsonResponse({"error": str(error)}, status=400)
    if not EARLIEST <= query.since < query.until <= LATEST:
        return JsonResponse({"error": _("The end must lie after the beginning.")}, status=400)
    since, until = (datetime.fromtimestamp(at, UTC) for at in (query.since, query.until))
    found = markers(query.scope, query.id, since, until, hidden_of(request))
    return JsonResponse({"markers": [marker.json() for marker in found]})
