"""What a page asks before it follows the live telemetry."""

from typing import Literal

import msgspec
from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from monitoring.seed import seed


class SeedQuery(msgspec.Struct, frozen=True):
    scope: Literal["fleet", "node", "deployment"]
    id: int | None = None
    minutes: Literal[5, 15, 60] = 15


@require_GET
@never_cache
def telemetry_seed(request: HttpRequest) -> JsonResponse:
    """`?scope=fleet|node|deployment&id=N&minutes=5|15|60` for whoever is signed in."""
    if not request.user.is_authenticated:
        return JsonResponse({"error": _("Sign in to see telemetry.")}, status=401)
    given = {name: value for name, value in request.GET.items() if value}
    try:
        query = msgspec.convert(given, SeedQuery, strict=False)
    except msgspec.ValidationError as error:
        return JsonResponse({"error": str(error)}, status=400)
    return JsonResponse(seed(query.scope, query.id, query.minutes))
