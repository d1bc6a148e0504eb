"""`GET /metrics`: the fleet for Prometheus, for operators or a program with an API key.

`?aliases=vllm` adds vLLM's names for what they mean, as public boards ask for them. They are not
there unasked: their colons are reserved for rules, which `promtool` holds against a page.
"""

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dashboard.access import hidden_from
from dashboard.gateway.errors import ApiError
from dashboard.gateway.keys import authenticate
from dashboard.standings import Standings
from dashboard.views.access import may_operate
from monitoring.export import prometheus as exporter
from monitoring.export.alerts import FiringAlerts

PARTLY = _(
    "This tells of the whole fleet, and some of it belongs to teams that you are no member of. Use "
    "an administrator's key."
)


@require_GET
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    user: object = request.user
    if not may_operate(request):
        try:
            user = authenticate(request.headers.get("Authorization", ""), "reads").user
        except ApiError as error:
            refused = HttpResponse(f"{error}\n", status=401, content_type="text/plain")
            refused["WWW-Authenticate"] = "Bearer"
            return refused
    if hidden_from(user):
        return HttpResponse(f"{PARTLY}\n", status=403, content_type="text/plain")
    aliases = request.GET.get("aliases", "")
    if aliases not in ("", "vllm"):
        text = f"aliases can only be vllm, not {aliases!r}.\n"
        return HttpResponse(text, status=400, content_type="text/plain")
    page = exporter.render(Standings(), FiringAlerts(), aliases=bool(aliases))
    return HttpResponse(page, content_type=exporter.CONTENT_TYPE)
